// Reductions. Source: Ascend C API, reduction; tree order and use of the work tensor: ReduceSum, key features.
#include <cstring>

#include "isa/execute.h"
#include "isa/saturation.h"
#include "isa/table.h"
#include "isa/vector_run.h"

namespace opkit {
namespace {

enum class Order : uint8_t { ValueIndex, IndexValue, OnlyValue, OnlyIndex };  // ReduceOrder
enum class Kind : uint8_t { Sum, Max, Min };

Kind kind_of(Op op) {
  switch (op) {
    case Op::ReduceMax:
    case Op::WholeReduceMax:
    case Op::BlockReduceMax: return Kind::Max;
    case Op::ReduceMin:
    case Op::WholeReduceMin:
    case Op::BlockReduceMin: return Kind::Min;
    default: return Kind::Sum;
  }
}

struct Element {
  uint64_t bits;  ///< value
  uint32_t index;
};

bool is_nan(uint64_t bits, uint32_t element_bytes) {
  return element_bytes == 2 ? (bits & 0x7fff) > 0x7c00 : (bits & 0x7fffffff) > 0x7f800000;
}

/// A whole repeat in `buffer`: the operand's active lanes, and zeros elsewhere, which add nothing.
void gather_masked(const Core& core, const Operand& source, const LaneShape& shape, uint32_t repeat, uint8_t* buffer) {
  const uint32_t lanes = repeat + 1 == shape.repeat ? shape.tail : shape.active;
  const uint32_t element_bytes = size_bytes(source.dtype);
  std::memset(buffer + lanes * element_bytes, 0, kRepeatBytes - lanes * element_bytes);
  gather_repeat(core, source, repeat, lanes, buffer);
  if (!shape.is_bits) return;
  for (uint32_t lane = 0; lane < lanes; ++lane) {
    if (!shape.is_active(lane)) std::memset(buffer + lane * element_bytes, 0, element_bytes);
  }
}

/// The place of the first of `count` values that is `extreme`: zeros are one value, and NaNs are. 0 where none is.
template <typename Bits>
uint32_t place_of(const uint8_t* values, uint32_t count, Bits extreme) {
  constexpr Bits kMagnitude = static_cast<Bits>(~Bits{0}) >> 1;
  constexpr Bits kInfinity = sizeof(Bits) == 2 ? static_cast<Bits>(0x7c00) : static_cast<Bits>(0x7f800000);
  const auto first = [&](auto is_same) {
    for (uint32_t i = 0; i < count; ++i) {
      Bits bits;
      std::memcpy(&bits, values + i * sizeof(Bits), sizeof(Bits));
      if (is_same(bits)) return i;
    }
    return 0u;
  };
  const Bits magnitude = extreme & kMagnitude;
  if (magnitude > kInfinity) return first([](Bits bits) { return (bits & kMagnitude) > kInfinity; });
  if (magnitude == 0) return first([](Bits bits) { return (bits & kMagnitude) == 0; });
  return first([&](Bits bits) { return bits == extreme; });
}

/// The extreme of `count` values that lie one behind the other and its first place; a NaN wins.
Element find_extreme(const uint8_t* values, uint32_t count, DType type, Kind kind) {
  const auto& lanes = kind == Kind::Max ? lanes::table().maximum : lanes::table().minimum;
  const void* sources[1] = {values};
  Element result = {0, 0};
  lanes[static_cast<size_t>(type)](&result.bits, sources, nullptr, count);
  result.index = size_bytes(type) == 2 ? place_of(values, count, static_cast<uint16_t>(result.bits))
                                       : place_of(values, count, static_cast<uint32_t>(result.bits));
  return result;
}

/// The extreme of the active lanes [first, last) of a gathered repeat and the first lane that has it.
Element find_extreme(const uint8_t* values, const LaneShape& shape, uint32_t first, uint32_t last, DType type,
                     Kind kind) {
  const uint32_t element_bytes = size_bytes(type);
  if (!shape.is_bits) {
    Element result = find_extreme(values + first * element_bytes, last - first, type, kind);
    result.index += first;
    return result;
  }
  alignas(64) uint8_t packed[kRepeatBytes];
  uint32_t lane_of[kRepeatBytes / 2] = {};
  uint32_t count = 0;
  for (uint32_t lane = first; lane < last; ++lane) {
    if (!shape.is_active(lane)) continue;
    std::memcpy(packed + count * element_bytes, values + lane * element_bytes, element_bytes);
    lane_of[count++] = lane;
  }
  Element result = find_extreme(packed, count, type, kind);
  result.index = lane_of[result.index];
  return result;
}

void write_element(uint8_t* to, const Element& element, uint32_t element_bytes, Order order) {
  switch (order) {
    case Order::ValueIndex:
      std::memcpy(to, &element.bits, element_bytes);
      std::memcpy(to + element_bytes, &element.index, element_bytes);
      return;
    case Order::IndexValue:
      std::memcpy(to, &element.index, element_bytes);
      std::memcpy(to + element_bytes, &element.bits, element_bytes);
      return;
    case Order::OnlyValue: std::memcpy(to, &element.bits, element_bytes); return;
    case Order::OnlyIndex: std::memcpy(to, &element.index, sizeof(element.index)); return;
  }
}

uint32_t order_bytes(Kind kind, Order order, uint32_t element_bytes) {
  if (kind == Kind::Sum || order == Order::OnlyValue) return element_bytes;
  return order == Order::OnlyIndex ? sizeof(uint32_t) : 2 * element_bytes;
}

Order order_of(const Instr& instr) { return static_cast<Order>(instr.mode); }

/// Whether the count form of ReduceSum adds repeats one after the other; else it builds a tree of them too.
bool adds_repeats_in_order(const Core& core, const Instr& instr) {
  return instr.mask_form == MaskForm::Count && core.chip->traits().adds_count_in_order;
}

/// Running sum over repeats: in order, or as levels of a binary tree whose width is a repeat's lanes.
class RepeatSum {
 public:
  RepeatSum(DType type, bool is_in_order) : type_(type), is_in_order_(is_in_order), bytes_(size_bytes(type)) {}

  /// Adds `count` sums of repeats; `values` has room for one more in front of them.
  void add(uint8_t* values, uint32_t count) {
    if (is_in_order_) {
      if (!is_empty_) std::memcpy(values - bytes_, &sum_, bytes_);
      const void* sources[1] = {is_empty_ ? values : values - bytes_};
      const lanes::Lane lane = lanes::table().sum_in_order[static_cast<size_t>(type_)];
      lane(&sum_, sources, nullptr, is_empty_ ? count : count + 1);
      is_empty_ = false;
      return;
    }
    for (uint32_t i = 0; i < count; ++i) {
      uint64_t value = 0;
      std::memcpy(&value, values + i * bytes_, bytes_);
      push(0, value);
    }
  }

  uint64_t finish() {
    if (is_in_order_) return sum_;
    for (uint32_t level = 0; level < kLevels; ++level) {
      bool is_last = true;
      for (uint32_t above = level + 1; above < kLevels; ++above) is_last = is_last && counts_[above] == 0;
      if (counts_[level] == 0) continue;
      if (is_last && counts_[level] == 1) return read(level, 0);
      const uint64_t value = collapse(level);
      if (is_last) return value;
      push(level + 1, value);
    }
    return 0;
  }

 private:
  static constexpr uint32_t kLevels = 6;  // 64^6 repeats

  uint64_t read(uint32_t level, uint32_t i) const {
    uint64_t bits = 0;
    std::memcpy(&bits, values_[level] + i * bytes_, bytes_);
    return bits;
  }
  uint64_t collapse(uint32_t level) {
    std::memset(values_[level] + counts_[level] * bytes_, 0, kRepeatBytes - counts_[level] * bytes_);
    const void* sources[1] = {values_[level]};
    uint64_t sum = 0;
    lanes::table().sum_repeats[static_cast<size_t>(type_)](&sum, sources, nullptr, 1);
    counts_[level] = 0;
    return sum;
  }
  void push(uint32_t level, uint64_t value) {
    if (counts_[level] == kRepeatBytes / bytes_) push(level + 1, collapse(level));
    std::memcpy(values_[level] + counts_[level] * bytes_, &value, bytes_);
    ++counts_[level];
  }

  DType type_;
  bool is_in_order_;
  uint32_t bytes_;
  bool is_empty_ = true;
  uint64_t sum_ = 0;
  uint32_t counts_[kLevels] = {};
  alignas(64) uint8_t values_[kLevels][kRepeatBytes];
};

uint64_t sum_all(const Core& core, const Instr& instr, const LaneShape& shape) {
  const Operand& source = instr.src[0];
  const lanes::Lane lane = lanes::table().sum_repeats[static_cast<size_t>(source.dtype)];
  RepeatSum total(source.dtype, adds_repeats_in_order(core, instr));
  uint32_t repeat = 0;
  if (is_contiguous(shape, source)) {
    constexpr uint32_t kChunk = 64;
    const uint32_t whole = shape.tail == shape.lanes ? shape.repeat : shape.repeat - 1;
    alignas(64) uint8_t buffer[kBlockBytes + kChunk * 4];
    uint8_t* sums = buffer + kBlockBytes;
    while (repeat < whole) {
      const uint32_t count = whole - repeat < kChunk ? whole - repeat : kChunk;
      const void* sources[1] = {core.at(source) + uint64_t{repeat} * kRepeatBytes};
      lane(sums, sources, nullptr, count);
      total.add(sums, count);
      repeat += count;
    }
  }
  for (; repeat < shape.repeat; ++repeat) {
    alignas(64) uint8_t gathered[kRepeatBytes];
    gather_masked(core, source, shape, repeat, gathered);
    const void* sources[1] = {gathered};
    uint64_t value[2] = {0, 0};
    lane(&value[1], sources, nullptr, 1);
    total.add(reinterpret_cast<uint8_t*>(&value[1]), 1);
  }
  return total.finish();
}

/// The index counts whole repeats of lanes, as the chip derives it from the repeat and the index in it.
Element extreme_of_all(const Core& core, const Instr& instr, const LaneShape& shape, Kind kind) {
  const Operand& source = instr.src[0];
  const uint32_t element_bytes = size_bytes(source.dtype);
  const auto& lanes = kind == Kind::Max ? lanes::table().maximum : lanes::table().minimum;
  const lanes::Lane lane = lanes[static_cast<size_t>(source.dtype)];
  Element best = {0, 0};
  for (uint32_t repeat = 0; repeat < shape.repeat; ++repeat) {
    alignas(64) uint8_t gathered[kRepeatBytes];
    const uint32_t count = repeat + 1 == shape.repeat ? shape.tail : shape.active;
    const uint8_t* values = gathered;
    if (source.block_stride == 1) {
      values = core.at(source) + uint64_t{repeat} * source.repeat_stride * kBlockBytes;
    } else {
      gather_repeat(core, source, repeat, count, gathered);
    }
    if (repeat > 0 && !shape.is_bits) {
      // Most repeats do not hold the extreme: look for its place only in one that does.
      alignas(64) uint8_t value_and_best[2][16] = {};
      const void* sources[1] = {values};
      lane(value_and_best[0], sources, nullptr, count);
      std::memcpy(value_and_best[0] + element_bytes, &best.bits, element_bytes);
      const void* both[1] = {value_and_best[0]};
      lane(value_and_best[1], both, nullptr, 2);
      uint64_t winner = 0;
      std::memcpy(&winner, value_and_best[1], element_bytes);
      if (winner == best.bits || is_nan(best.bits, element_bytes)) continue;
    }
    Element here = find_extreme(values, shape, 0, count, source.dtype, kind);
    here.index += repeat * shape.lanes;
    if (repeat == 0) {
      best = here;
      continue;
    }
    alignas(64) uint8_t pair[16] = {};
    std::memcpy(pair, &best.bits, element_bytes);
    std::memcpy(pair + element_bytes, &here.bits, element_bytes);
    if (find_extreme(pair, 2, source.dtype, kind).index == 1) best = here;
  }
  return best;
}

uint64_t round_up(uint64_t value, uint64_t step) { return (value + step - 1) / step * step; }

/// Bytes of the work tensor that the chip writes. Source: ReduceSum and ReduceMax, key features.
uint64_t work_bytes(const Core& core, const Instr& instr, const LaneShape& shape) {
  const uint32_t element_bytes = size_bytes(instr.src[0].dtype);
  const uint64_t per_block = kBlockBytes / element_bytes;
  const uint64_t per_repeat = kRepeatBytes / element_bytes;
  const uint64_t whole = shape.is_count ? instr.count / per_repeat : instr.repeat;
  const uint64_t repeats = whole == 0 ? 1 : whole;
  if (kind_of(instr.op) == Kind::Sum) {
    if (adds_repeats_in_order(core, instr)) return 0;
    return round_up(repeats, per_block) * element_bytes;
  }
  const uint64_t first = repeats * 2;
  uint64_t elements = round_up(first, per_block);
  if (instr.mode == 0) return elements * element_bytes;
  const uint64_t second = (first + per_repeat - 1) / per_repeat * 2;
  elements += round_up(second, per_block);
  if (second > 2) elements += round_up((second + per_repeat - 1) / per_repeat * 2, per_block);
  return elements * element_bytes;
}

}  // namespace

VectorUse reduce_use(const Core& core, const Instr& instr) {
  VectorUse use;
  const uint32_t element_bytes = size_bytes(instr.src[0].dtype);
  // ReduceSum and its like take more than 255 repeats. Source: ReduceSum, parameters
  if (instr.mask_form != MaskForm::Count && instr.repeat > 255) {
    Instr one = instr;
    one.repeat = 1;
    use.shape = lane_shape(core, one, element_bytes);
    if (use.shape.repeat == 1 && core.mask_mode == MaskMode::Normal) use.shape.repeat = instr.repeat;
  } else {
    use.shape = lane_shape(core, instr, element_bytes);
  }
  if (use.shape.repeat == 0) return use;
  const bool has_index = kind_of(instr.op) != Kind::Sum && instr.mode != 0;
  const uint32_t bytes = has_index ? 2 * element_bytes : element_bytes;
  use.uses.add_run(instr.dst, 0, true, bytes).alignment = bytes;
  use.uses.add(instr.src[0], 1, false);
  const uint64_t work = work_bytes(core, instr, use.shape);
  if (work > 0) use.uses.add_run(instr.src[1], 2, true, work).is_read = true;
  return use;
}

void execute_reduce(Core& core, const Instr& instr) {
  const VectorUse use = reduce_use(core, instr);
  if (use.shape.repeat == 0) return;
  check_operands(core, instr, use.shape, use.uses);
  check_saturates_nothing(core, instr);
  const uint32_t element_bytes = size_bytes(instr.src[0].dtype);
  const Kind kind = kind_of(instr.op);
  if (kind == Kind::Sum) {
    const uint64_t sum = sum_all(core, instr, use.shape);
    std::memcpy(core.at(instr.dst), &sum, element_bytes);
    core.reduce_sum_bits = sum;
    return;
  }
  const Element best = extreme_of_all(core, instr, use.shape, kind);
  write_element(core.at(instr.dst), best, element_bytes, instr.mode != 0 ? Order::ValueIndex : Order::OnlyValue);
  core.reduce_max_min_bits[0] = best.bits;
  core.reduce_max_min_bits[1] = best.index;
}

VectorUse repeat_reduce_use(const Core& core, const Instr& instr) {
  VectorUse use;
  const uint32_t element_bytes = size_bytes(instr.src[0].dtype);
  use.shape = lane_shape(core, instr, element_bytes);
  if (use.shape.repeat == 0) return use;
  OperandUse& dst = use.uses.add(instr.dst, 0, true);
  dst.layout = Layout::Repeats;
  // The destination's repeat stride counts results of one repeat. Source: ReduceRepeat table 3, ReduceDataBlock,
  // ReducePairElem
  switch (instr.op) {
    case Op::BlockReduceSum:
    case Op::BlockReduceMax:
    case Op::BlockReduceMin:
      dst.stride_bytes = uint64_t{instr.dst.repeat_stride} * kBlocksPerRepeat * element_bytes;
      dst.bytes = (use.shape.active * element_bytes + kBlockBytes - 1) / kBlockBytes * element_bytes;
      dst.alignment = kBlocksPerRepeat * element_bytes;
      break;
    case Op::PairReduceSum:
      dst.stride_bytes = uint64_t{instr.dst.repeat_stride} * kRepeatBytes / 2;
      dst.bytes = (use.shape.active + 1) / 2 * element_bytes;
      break;
    default:
      dst.bytes = order_bytes(kind_of(instr.op), order_of(instr), element_bytes);
      dst.stride_bytes = instr.dst.repeat_stride * dst.bytes;
      dst.alignment = static_cast<uint32_t>(dst.bytes);
  }
  use.uses.add(instr.src[0], 1, false);
  return use;
}

namespace {

/// One result for each data block or pair that has an active lane; the others keep what the destination holds.
void reduce_groups(const Instr& instr, const LaneShape& shape, uint32_t lanes, const uint8_t* gathered, uint32_t group,
                   uint8_t* to) {
  const DType type = instr.src[0].dtype;
  const uint32_t element_bytes = size_bytes(type);
  const Kind kind = kind_of(instr.op);
  alignas(64) uint8_t sums[kRepeatBytes];
  if (kind == Kind::Sum) {
    const void* sources[1] = {gathered};
    const auto& table = group == 2 ? lanes::table().sum_pairs : lanes::table().sum_blocks;
    table[static_cast<size_t>(type)](sums, sources, nullptr, 1);
  }
  for (uint32_t first = 0; first < lanes; first += group) {
    const uint32_t last = first + group < lanes ? first + group : lanes;
    bool has_active = !shape.is_bits;
    for (uint32_t lane = first; lane < last && !has_active; ++lane) has_active = shape.is_active(lane);
    if (!has_active) continue;
    uint8_t* place = to + first / group * element_bytes;
    if (kind == Kind::Sum) {
      std::memcpy(place, sums + first / group * element_bytes, element_bytes);
      continue;
    }
    write_element(place, find_extreme(gathered, shape, first, last, type, kind), element_bytes, Order::OnlyValue);
  }
}

}  // namespace

void execute_repeat_reduce(Core& core, const Instr& instr) {
  const VectorUse use = repeat_reduce_use(core, instr);
  const LaneShape& shape = use.shape;
  if (shape.repeat == 0) return;
  check_operands(core, instr, shape, use.uses);
  check_saturates_nothing(core, instr);
  const DType type = instr.src[0].dtype;
  const uint32_t element_bytes = size_bytes(type);
  const Kind kind = kind_of(instr.op);
  const bool is_pairs = instr.op == Op::PairReduceSum;
  const bool is_blocks =
      instr.op == Op::BlockReduceSum || instr.op == Op::BlockReduceMax || instr.op == Op::BlockReduceMin;
  const Order order = order_of(instr);
  if (kind != Kind::Sum && !is_blocks && !core.chip->traits().reduces_to_one) {
    OPKIT_CHECK(order == Order::ValueIndex || order == Order::IndexValue, IllegalOperand, &instr, nullptr,
                "%s: this chip has ORDER_VALUE_INDEX and ORDER_INDEX_VALUE only", row_of(instr.op).name);
  }
  uint8_t* to = core.at(instr.dst);
  Element best = {0, 0};
  for (uint32_t repeat = 0; repeat < shape.repeat; ++repeat, to += use.uses.items[0].stride_bytes) {
    alignas(64) uint8_t gathered[kRepeatBytes];
    const uint32_t lanes = repeat + 1 == shape.repeat ? shape.tail : shape.active;
    gather_masked(core, instr.src[0], shape, repeat, gathered);
    if (is_pairs || is_blocks) {
      reduce_groups(instr, shape, lanes, gathered, is_pairs ? 2 : kBlockBytes / element_bytes, to);
      continue;
    }
    if (kind == Kind::Sum) {
      const void* sources[1] = {gathered};
      lanes::table().sum_repeats[static_cast<size_t>(type)](to, sources, nullptr, 1);
      continue;
    }
    Element here = find_extreme(gathered, shape, 0, lanes, type, kind);
    write_element(to, here, element_bytes, order);
    here.index += repeat * shape.lanes;
    alignas(64) uint8_t pair[16] = {};
    std::memcpy(pair, &best.bits, element_bytes);
    std::memcpy(pair + element_bytes, &here.bits, element_bytes);
    if (repeat == 0 || find_extreme(pair, 2, type, kind).index == 1) best = here;
  }
  if (kind == Kind::Sum || is_blocks) return;
  core.reduce_max_min_bits[0] = best.bits;
  core.reduce_max_min_bits[1] = best.index;
}

}  // namespace opkit
