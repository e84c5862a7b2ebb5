// Reductions of each repeat, of its data blocks or of its pairs. Source: Ascend C API, reduction.
#include <algorithm>
#include <cstring>

#include "isa/execute.h"
#include "isa/extreme.h"
#include "isa/saturation.h"
#include "isa/table.h"
#include "isa/vector_run.h"

namespace opkit {
namespace {

constexpr uint32_t kChunk = 16;  // repeats whose results are found together

bool is_blocks(Op op) { return op == Op::BlockReduceSum || op == Op::BlockReduceMax || op == Op::BlockReduceMin; }

ReduceOrder order_of(const Instr& instr) { return static_cast<ReduceOrder>(instr.mode); }

uint32_t order_bytes(Reduction kind, ReduceOrder order, uint32_t element_bytes) {
  if (kind == Reduction::Sum || order == ReduceOrder::OnlyValue) return element_bytes;
  return order == ReduceOrder::OnlyIndex ? sizeof(uint32_t) : 2 * element_bytes;
}

/// What finds the values that repeats of all lanes give.
lanes::Lane lane_of(const Instr& instr) {
  const lanes::LaneTable& table = lanes::table();
  const size_t column = static_cast<size_t>(instr.src[0].dtype);
  switch (instr.op) {
    case Op::PairReduceSum: return table.sum_pairs[column];
    case Op::BlockReduceSum: return table.sum_blocks[column];
    case Op::BlockReduceMax: return table.maximum_blocks[column];
    case Op::BlockReduceMin: return table.minimum_blocks[column];
    case Op::WholeReduceMax: return table.maximum_repeats[column];
    case Op::WholeReduceMin: return table.minimum_repeats[column];
    default: return table.sum_repeats[column];
  }
}

/// The register's extreme of all repeats: the first place that has it.
class BestOfRepeats {
 public:
  BestOfRepeats(DType type, Reduction kind) : type_(type), kind_(kind) {}

  bool takes(uint64_t bits) const { return is_empty_ || is_beyond(best_.bits, bits, type_, kind_); }
  void add(const Element& element) {
    if (!takes(element.bits)) return;
    best_ = element;
    is_empty_ = false;
  }
  const Element& best() const { return best_; }

 private:
  DType type_;
  Reduction kind_;
  bool is_empty_ = true;
  Element best_ = {0, 0};
};

/// A reduction on its way: `to` and `from` are the bytes of the next repeat.
struct Reducing {
  const Core& core;
  const Instr& instr;
  const LaneShape& shape;
  const OperandUse& dst;
  DType type = instr.src[0].dtype;
  uint32_t element_bytes = size_bytes(type);
  Reduction kind = reduction_of(instr.op);
  uint64_t source_stride = uint64_t{instr.src[0].repeat_stride} * kBlockBytes;

  uint32_t lanes_of(uint32_t repeat) const { return repeat + 1 == shape.repeat ? shape.tail : shape.active; }
  const uint8_t* from(uint32_t repeat) const { return core.at(instr.src[0]) + repeat * source_stride; }
  uint8_t* to(uint32_t repeat) const { return core.at(instr.dst) + repeat * dst.stride_bytes; }

  /// Whether no result lies where a repeat has still to be read. The lanes of a source lie one behind the other.
  bool is_apart() const {
    const uint8_t* first = core.at(instr.dst);
    const uint8_t* end = to(shape.repeat - 1) + dst.bytes;
    const uint8_t* source = from(0);
    const uint8_t* source_end = from(shape.repeat - 1) + shape.lanes * element_bytes;
    return end <= source || source_end <= first;
  }

  /// Stores the results of `count` repeats, which lie one behind the other.
  void store(uint32_t repeat, uint32_t count, const uint8_t* results) const {
    for (uint32_t i = 0; i < count; ++i) std::memcpy(to(repeat + i), results + i * dst.bytes, dst.bytes);
  }
};

/// Repeats of all lanes whose values are all that is asked for, many at a time. Returns how many it has done.
uint32_t reduce_whole(const Reducing& at) {
  const bool is_dense = at.source_stride == kRepeatBytes;
  const bool is_packed = at.dst.stride_bytes == at.dst.bytes;
  const uint32_t whole = at.shape.tail == at.shape.lanes ? at.shape.repeat : at.shape.repeat - 1;
  const lanes::Lane lane = lane_of(at.instr);
  alignas(64) uint8_t gathered[kChunk * kRepeatBytes];
  alignas(64) uint8_t results[kChunk * kRepeatBytes / 2];
  for (uint32_t repeat = 0; repeat < whole;) {
    const uint32_t count = is_dense && is_packed ? whole : std::min(kChunk, whole - repeat);
    const void* sources[1] = {is_dense ? at.from(repeat) : gathered};
    for (uint32_t i = 0; i < count && !is_dense; ++i) {
      std::memcpy(gathered + i * kRepeatBytes, at.from(repeat + i), kRepeatBytes);
    }
    lane(is_packed ? at.to(repeat) : results, sources, nullptr, count);
    if (!is_packed) at.store(repeat, count, results);
    repeat += count;
  }
  return whole;
}

/// The extreme of each repeat, its value alone; only of the best of them the place is looked for.
void extremes_of_repeats(const Reducing& at, BestOfRepeats& best) {
  const auto& row = at.kind == Reduction::Max ? lanes::table().maximum : lanes::table().minimum;
  const lanes::Lane one = row[static_cast<size_t>(at.type)];
  const bool is_dense = at.source_stride == kRepeatBytes && at.shape.active == at.shape.lanes;
  alignas(64) uint8_t results[kChunk * sizeof(float)];
  for (uint32_t repeat = 0; repeat < at.shape.repeat; repeat += kChunk) {
    const uint32_t count = std::min(kChunk, at.shape.repeat - repeat);
    const uint32_t whole = !is_dense ? 0 : at.lanes_of(repeat + count - 1) == at.shape.lanes ? count : count - 1;
    const void* sources[1] = {at.from(repeat)};
    if (whole > 0) lane_of(at.instr)(results, sources, nullptr, whole);
    for (uint32_t i = whole; i < count; ++i) {
      sources[0] = at.from(repeat + i);
      one(results + i * at.element_bytes, sources, nullptr, at.lanes_of(repeat + i));
    }
    const Element largest = find_extreme(results, count, at.type, at.kind);
    if (best.takes(largest.bits)) {
      const uint32_t found = repeat + largest.index;
      Element element = find_extreme(at.from(found), at.lanes_of(found), at.type, at.kind);
      element.index += found * at.shape.lanes;
      best.add(element);
    }
    at.store(repeat, count, results);
  }
}

/// One result for each data block or pair that has an active lane; the others keep what the destination holds.
void reduce_groups(const Reducing& at, uint32_t lanes, const uint8_t* gathered, uint32_t group, uint8_t* to) {
  alignas(64) uint8_t sums[kRepeatBytes];
  if (at.kind == Reduction::Sum) {
    const void* sources[1] = {gathered};
    lane_of(at.instr)(sums, sources, nullptr, 1);
  }
  for (uint32_t first = 0; first < lanes; first += group) {
    const uint32_t last = std::min(first + group, lanes);
    bool has_active = !at.shape.is_bits;
    for (uint32_t lane = first; lane < last && !has_active; ++lane) has_active = at.shape.is_active(lane);
    if (!has_active) continue;
    uint8_t* place = to + first / group * at.element_bytes;
    if (at.kind == Reduction::Sum) {
      std::memcpy(place, sums + first / group * at.element_bytes, at.element_bytes);
      continue;
    }
    const Element element = find_extreme(gathered, at.shape, first, last, at.type, at.kind);
    write_element(place, element, at.element_bytes, ReduceOrder::OnlyValue);
  }
}

}  // namespace

VectorUse repeat_reduce_use(const Core& core, const Instr& instr) {
  VectorUse use;
  const uint32_t element_bytes = size_bytes(instr.src[0].dtype);
  use.shape = lane_shape(core, instr, element_bytes);
  if (use.shape.repeat == 0) return use;
  OperandUse& dst = use.uses.add(instr.dst, 0, true);
  dst.layout = Layout::Repeats;
  // The destination's repeat stride counts results of one repeat. Source: ReduceRepeat table 3, ReduceDataBlock,
  // ReducePairElem
  if (is_blocks(instr.op)) {
    dst.stride_bytes = uint64_t{instr.dst.repeat_stride} * kBlocksPerRepeat * element_bytes;
    dst.bytes = (use.shape.active * element_bytes + kBlockBytes - 1) / kBlockBytes * element_bytes;
    dst.alignment = kBlocksPerRepeat * element_bytes;
  } else if (instr.op == Op::PairReduceSum) {
    dst.stride_bytes = uint64_t{instr.dst.repeat_stride} * kRepeatBytes / 2;
    dst.bytes = (use.shape.active + 1) / 2 * element_bytes;
  } else {
    dst.bytes = order_bytes(reduction_of(instr.op), order_of(instr), element_bytes);
    dst.stride_bytes = instr.dst.repeat_stride * dst.bytes;
    dst.alignment = static_cast<uint32_t>(dst.bytes);
  }
  use.uses.add(instr.src[0], 1, false);
  return use;
}

void execute_repeat_reduce(Core& core, const Instr& instr) {
  const VectorUse use = repeat_reduce_use(core, instr);
  const LaneShape& shape = use.shape;
  if (shape.repeat == 0) return;
  check_operands(core, instr, shape, use.uses);
  check_saturates_nothing(core, instr);
  const Reducing at = {core, instr, shape, use.uses.items[0]};
  const bool is_pairs = instr.op == Op::PairReduceSum;
  const bool is_whole = !is_pairs && !is_blocks(instr.op);
  const bool has_register = is_whole && at.kind != Reduction::Sum;
  const ReduceOrder order = order_of(instr);
  if (has_register && !core.chip->traits().reduces_to_one) {
    OPKIT_CHECK(order == ReduceOrder::ValueIndex || order == ReduceOrder::IndexValue, IllegalOperand, &instr, nullptr,
                "%s: this chip has ORDER_VALUE_INDEX and ORDER_INDEX_VALUE only", row_of(instr.op).name);
  }
  BestOfRepeats best(at.type, at.kind);
  const bool is_plain = !shape.is_bits && instr.src[0].block_stride == 1 && at.is_apart();
  uint32_t repeat = 0;
  if (is_plain && has_register && order == ReduceOrder::OnlyValue) {
    extremes_of_repeats(at, best);
    repeat = shape.repeat;
  } else if (is_plain && !has_register && shape.active == shape.lanes) {
    repeat = reduce_whole(at);
  }
  for (; repeat < shape.repeat; ++repeat) {
    alignas(64) uint8_t gathered[kRepeatBytes];
    const uint32_t lanes = at.lanes_of(repeat);
    gather_masked(core, instr.src[0], shape, repeat, gathered);
    if (!is_whole) {
      reduce_groups(at, lanes, gathered, is_pairs ? 2 : kBlockBytes / at.element_bytes, at.to(repeat));
      continue;
    }
    if (at.kind == Reduction::Sum) {
      const void* sources[1] = {gathered};
      lane_of(instr)(at.to(repeat), sources, nullptr, 1);
      continue;
    }
    Element here = find_extreme(gathered, shape, 0, lanes, at.type, at.kind);
    write_element(at.to(repeat), here, at.element_bytes, order);
    here.index += repeat * shape.lanes;
    best.add(here);
  }
  if (!has_register) return;
  core.reduce_max_min_bits[0] = best.best().bits;
  core.reduce_max_min_bits[1] = best.best().index;
}

}  // namespace opkit
