#include "isa/vector_shape.h"

#include "isa/table.h"
#include "memory/bounds.h"

namespace opkit {
namespace {

uint32_t log2_of_bytes(uint32_t element_bytes) { return element_bytes == 8 ? 3 : element_bytes >> 1; }

LaneShape counted(uint64_t count, uint32_t element_bytes) {
  const uint32_t shift = 8 - log2_of_bytes(element_bytes);
  LaneShape shape;
  shape.lanes = 1u << shift;
  if (count == 0) return shape;
  shape.repeat = static_cast<uint32_t>((count + shape.lanes - 1) >> shift);
  shape.active = shape.lanes;
  shape.tail = static_cast<uint32_t>(count - (uint64_t{shape.repeat - 1} << shift));
  return shape;
}

/// Bits that are the first n lanes become the number n.
void simplify(LaneShape& shape, uint64_t low, uint64_t high) {
  if (shape.lanes <= 64) high = 0;
  if (shape.lanes < 64) low &= (1ull << shape.lanes) - 1;
  if (low == 0 && high == 0) {  // no lane: the destination keeps its values. Source: SIMD compute, mask
    shape.repeat = 0;
    return;
  }
  const bool is_low_prefix = high == 0 && (low & (low + 1)) == 0;
  const bool is_high_prefix = low == ~0ull && (high & (high + 1)) == 0;
  if (is_low_prefix || is_high_prefix) {
    shape.active = static_cast<uint32_t>(__builtin_popcountll(low) + __builtin_popcountll(high));
    shape.tail = shape.active;
    return;
  }
  shape.is_bits = true;
  shape.bits[0] = low;
  shape.bits[1] = high;
  // The last lane bounds the footprint of one block.
  shape.active =
      high != 0 ? 128 - static_cast<uint32_t>(__builtin_clzll(high)) : 64 - static_cast<uint32_t>(__builtin_clzll(low));
  shape.tail = shape.active;
}

/// Bytes from an operand's start to behind the last lane of one repeat of `lanes` lanes.
uint64_t repeat_extent(const Operand& operand, uint32_t lanes) {
  const uint64_t bytes = span_bytes(operand.dtype, lanes);
  if (operand.block_stride == 1) return bytes;
  const uint64_t last_block = (bytes - 1) / kBlockBytes;
  if (operand.block_stride == 0) return last_block > 0 ? kBlockBytes : bytes;
  return last_block * operand.block_stride * kBlockBytes + (bytes - last_block * kBlockBytes);
}

uint64_t extent(const LaneShape& shape, const OperandUse& use) {
  if (use.layout == Layout::Run) return use.bytes;
  if (use.layout == Layout::Repeats) return (shape.repeat - 1) * use.stride_bytes + use.bytes;
  const Operand& operand = *use.operand;
  if (is_contiguous(shape, operand)) return span_bytes(operand.dtype, shape.total());
  const uint64_t stride = uint64_t{operand.repeat_stride} * kBlockBytes;
  const uint64_t last = (shape.repeat - 1) * stride + repeat_extent(operand, shape.tail);
  if (shape.repeat == 1) return last;
  const uint64_t before = (shape.repeat - 2) * stride + repeat_extent(operand, shape.active);
  return before > last ? before : last;
}

const char* role_of(uint8_t index) {
  static constexpr const char* kRoles[] = {"dst", "src0", "src1", "src2"};
  return kRoles[index];
}

}  // namespace

LaneShape lane_shape(const Core& core, const Instr& instr, uint32_t element_bytes) {
  if (instr.mask_form == MaskForm::Count) {
    LaneShape shape = counted(instr.count, element_bytes);
    shape.is_count = true;
    return shape;
  }
  const uint64_t* mask = instr.mask_form == MaskForm::Register ? core.mask : instr.mask;
  // In counter mode the mask is the number of elements and the repeat times are not looked at.
  if (core.mask_mode == MaskMode::Counter) return counted(mask[0], element_bytes);

  OPKIT_CHECK(instr.repeat <= kMaxRepeat, IllegalOperand, &instr, "split the call, or use the form with a count",
              "%s: repeat times %u is over %u", row_of(instr.op).name, instr.repeat, kMaxRepeat);
  LaneShape shape;
  shape.repeat = instr.repeat;
  shape.lanes = kRepeatBytes / element_bytes;
  if (shape.repeat == 0) return shape;
  if (instr.mask_form != MaskForm::Prefix) {
    simplify(shape, mask[0], mask[1]);
    return shape;
  }
  // More than a repeat's lanes count as all of them. Source: SIMD compute, mask, table 5
  shape.active = mask[0] < shape.lanes ? static_cast<uint32_t>(mask[0]) : shape.lanes;
  shape.tail = shape.active;
  if (shape.active == 0) shape.repeat = 0;
  return shape;
}

LaneShape whole_shape(uint32_t repeat, uint32_t element_bytes) {
  LaneShape shape;
  shape.repeat = repeat;
  shape.lanes = kRepeatBytes / element_bytes;
  shape.active = shape.lanes;
  shape.tail = shape.lanes;
  return shape;
}

uint32_t lane_bytes(const Instr& instr) {
  uint32_t bytes = size_bytes(instr.dst.dtype);
  if (instr.source_count > 0 && size_bytes(instr.src[0].dtype) > bytes) bytes = size_bytes(instr.src[0].dtype);
  return bytes;
}

OperandUses lane_uses(const Instr& instr, uint32_t source_count) {
  OperandUses uses;
  uses.add(instr.dst, 0, true);
  for (uint32_t i = 0; i < source_count; ++i) uses.add(instr.src[i], static_cast<uint8_t>(i + 1), false);
  return uses;
}

void check_operands(const Core& core, const Instr& instr, const LaneShape& shape, const OperandUses& uses) {
  for (uint32_t i = 0; i < uses.count; ++i) {
    const OperandUse& use = uses.items[i];
    const Operand& operand = *use.operand;
    OPKIT_CHECK(operand.space == Space::UB, IllegalOperand, &instr, "copy the tensor to UB first",
                "%s: %s lies in %s; vector instructions work on UB", row_of(instr.op).name, role_of(use.index),
                space_name(operand.space));
    if (__builtin_expect(operand.address % use.alignment != 0, 0)) {
      check_alignment(instr, operand, use.alignment, role_of(use.index));
    }
    if (use.layout == Layout::Lanes && use.is_write && !shape.is_count && operand.block_stride == 0) {
      OPKIT_CHECK(span_bytes(operand.dtype, shape.active) <= kBlockBytes, IllegalOperand, &instr,
                  "use 1 for adjacent blocks", "%s: the destination's block stride is 0", row_of(instr.op).name);
    }
    const uint64_t bytes = extent(shape, use);
    const uint64_t end = operand.address + bytes;
    const bool is_inside = operand.address >= operand.begin && end <= operand.end &&
                           end <= core.space_bytes[static_cast<uint32_t>(Space::UB)];
    if (__builtin_expect(!is_inside, 0)) check_bounds(core, instr, operand, operand.address, bytes, use.is_write);
  }
}

}  // namespace opkit
