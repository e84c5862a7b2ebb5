// Reductions. Source: Ascend C API, reduction; tree order and use of the work tensor: ReduceSum, key features.
#include <cstring>

#include "isa/execute.h"
#include "isa/extreme.h"
#include "isa/saturation.h"
#include "isa/table.h"
#include "isa/vector_run.h"

namespace opkit {
namespace {

bool is_nan(uint64_t bits, uint32_t element_bytes) {
  return element_bytes == 2 ? (bits & 0x7fff) > 0x7c00 : (bits & 0x7fffffff) > 0x7f800000;
}

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
Element extreme_of_all(const Core& core, const Instr& instr, const LaneShape& shape, Reduction kind) {
  const Operand& source = instr.src[0];
  const uint32_t element_bytes = size_bytes(source.dtype);
  const auto& lanes = kind == Reduction::Max ? lanes::table().maximum : lanes::table().minimum;
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
    if (is_beyond(best.bits, here.bits, source.dtype, kind)) best = here;
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
  if (reduction_of(instr.op) == Reduction::Sum) {
    if (adds_repeats_in_order(core, instr)) return 0;
    return round_up(repeats, per_block) * element_bytes;
  }
  const uint64_t first = repeats * 2;
  uint64_t elements = round_up(first, per_block);
  // Fewer elements than a repeat has are none by the documents' formula: one round finds both.
  if (instr.mode == 0 || whole == 0) return elements * element_bytes;
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
  const bool has_index = reduction_of(instr.op) != Reduction::Sum && instr.mode != 0;
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
  const Reduction kind = reduction_of(instr.op);
  if (kind == Reduction::Sum) {
    const uint64_t sum = sum_all(core, instr, use.shape);
    std::memcpy(core.at(instr.dst), &sum, element_bytes);
    core.reduce_sum_bits = sum;
    return;
  }
  const Element best = extreme_of_all(core, instr, use.shape, kind);
  write_element(core.at(instr.dst), best, element_bytes,
                instr.mode != 0 ? ReduceOrder::ValueIndex : ReduceOrder::OnlyValue);
  core.reduce_max_min_bits[0] = best.bits;
  core.reduce_max_min_bits[1] = best.index;
}

}  // namespace opkit
