// Compare, CompareScalar, Compare to the register, Select. Source: Ascend C API, compare and select.
#include <cstring>

#include "isa/execute.h"
#include "isa/table.h"
#include "isa/vector_run.h"
#include "memory/bounds.h"

namespace opkit {
namespace {

constexpr uint32_t kCompareMaskBytes = 16;
enum class SelectFrom : uint8_t { Register, TensorScalar, TensorTensor };  // SELMODE

SelectFrom select_from(const Instr& instr) { return static_cast<SelectFrom>(instr.mode & ~kScalarInRegister); }

/// The selection whose address SetCmpMask loaded, for mode 2 without a selection among the parameters. Kernels store
/// what GetPhyAddr gave, in 32 or 64 bits: the lower half tells it from the start of UB. Or they store an offset in UB.
const uint8_t* addressed_selection(const Core& core, const Instr& instr, const LaneShape& shape) {
  const uint8_t* base = core.space_base[static_cast<uint32_t>(Space::UB)];
  Operand selection;
  selection.dtype = DType::U8;
  selection.end = core.space_bytes[static_cast<uint32_t>(Space::UB)];
  const auto stored = static_cast<uint32_t>(core.compare_mask[0]);
  const auto from_base = static_cast<uint32_t>(stored - reinterpret_cast<uint64_t>(base));
  selection.address = from_base < selection.end || stored >= selection.end ? from_base : stored;
  check_bounds(core, instr, selection, selection.address, (shape.total() + 7) / 8, false);
  return core.at(selection);
}

lanes::Lane compare_lane(const Instr& instr) {
  const auto& lanes = instr.op == Op::CompareScalar ? lanes::table().compare_scalar : lanes::table().compare;
  const lanes::Lane lane =
      instr.mode < lanes::kCompareModes ? lanes[instr.mode][static_cast<size_t>(instr.src[0].dtype)] : nullptr;
  OPKIT_CHECK(lane != nullptr, IllegalOperand, &instr, "int32_t has CMPMODE::EQ only; half and float have all",
              "%s: this element type does not have CMPMODE %u", row_of(instr.op).name, instr.mode);
  return lane;
}

/// One repeat of sources gathered, compared, and its bits stored at `bits`.
void compare_repeat(const Core& core, const Instr& instr, const LaneShape& shape, uint32_t repeat, lanes::Lane lane,
                    uint8_t* bits) {
  alignas(64) uint8_t gathered[2][kRepeatBytes];
  const void* sources[2] = {gathered[0], gathered[1]};
  for (uint32_t i = 0; i < instr.source_count; ++i) {
    gather_repeat(core, instr.src[i], repeat, shape.lanes, gathered[i]);
  }
  lane(bits, sources, instr.scalar_bits, shape.lanes);
}

/// Lanes that the mask leaves out keep their bits in the register, and so does the upper half with elements of 32 bits.
/// Source: C API, asc_gt, constraints; CCE Intrinsic API, vcmp.
void compare_to_register(Core& core, const Instr& instr, const LaneShape& shape, lanes::Lane lane) {
  const LaneShape masked = lane_shape(core, instr, size_bytes(instr.src[0].dtype));
  if (masked.repeat == 0) return;
  uint64_t bits[2] = {0, 0};
  compare_repeat(core, instr, shape, 0, lane, reinterpret_cast<uint8_t*>(bits));
  for (uint32_t i = 0; i < masked.active; ++i) {
    if (masked.is_bits && !masked.is_active(i)) continue;
    const uint64_t bit = 1ull << i % 64;
    uint64_t& word = core.compare_mask[i / 64];
    word = (word & ~bit) | (bits[i / 64] & bit);
  }
}

}  // namespace

VectorUse compare_use(const Core& core, const Instr& instr) {
  VectorUse use;
  const uint32_t element_bytes = size_bytes(instr.src[0].dtype);
  if (instr.mask_form == MaskForm::Count) {
    use.shape = lane_shape(core, instr, element_bytes);
  } else {
    use.shape = whole_shape(instr.repeat, element_bytes);
  }
  for (uint32_t i = 0; i < instr.source_count; ++i) use.uses.add(instr.src[i], static_cast<uint8_t>(i + 1), false);
  if (instr.op != Op::CompareRegister && use.shape.repeat > 0) {
    use.uses.add_run(instr.dst, 0, true, (use.shape.total() + 7) / 8);
  }
  return use;
}

void execute_compare(Core& core, const Instr& instr) {
  const VectorUse use = compare_use(core, instr);
  const LaneShape& shape = use.shape;
  if (shape.repeat == 0) return;
  if (instr.mask_form == MaskForm::Count) {
    OPKIT_CHECK(shape.tail == shape.lanes, IllegalOperand, &instr,
                "round the count up; the tensor's buffer must be large enough",
                "%s: %u elements are not a multiple of 256 bytes", row_of(instr.op).name, instr.count);
  } else {
    // Whole repeats of memory, and no mask, in A2's documents. Source: CCE Intrinsic API, vcmpv; C API, asc_gt
    const bool has_no_mask = instr.op != Op::CompareRegister && core.chip->traits().compares_past_masks;
    OPKIT_CHECK(has_no_mask || core.mask_mode == MaskMode::Normal, Unspecified, &instr, "call SetMaskNorm first",
                "%s with repeat times in counter mode", row_of(instr.op).name);
  }
  check_operands(core, instr, shape, use.uses);
  const lanes::Lane lane = compare_lane(instr);
  if (instr.op == Op::CompareRegister) {
    compare_to_register(core, instr, shape, lane);
    return;
  }
  uint8_t* bits = core.at(instr.dst);
  bool is_run = true;
  const void* sources[2] = {nullptr, nullptr};
  for (uint32_t i = 0; i < instr.source_count; ++i) {
    is_run = is_run && is_contiguous(shape, instr.src[i]);
    sources[i] = core.at(instr.src[i]);
  }
  if (is_run) {
    lane(bits, sources, instr.scalar_bits, shape.total());
    return;
  }
  for (uint32_t repeat = 0; repeat < shape.repeat; ++repeat) {
    compare_repeat(core, instr, shape, repeat, lane, bits + repeat * shape.lanes / 8);
  }
}

void execute_compare_mask(Core& core, const Instr& instr) {
  const bool is_store = instr.op == Op::GetCmpMask;
  const Operand& operand = is_store ? instr.dst : instr.src[0];
  OperandUses uses;
  uses.add_run(operand, is_store ? 0 : 1, is_store, kCompareMaskBytes).alignment = 16;
  check_operands(core, instr, LaneShape(), uses);
  if (is_store) {
    std::memcpy(core.at(operand), core.compare_mask, kCompareMaskBytes);
  } else {
    std::memcpy(core.compare_mask, core.at(operand), kCompareMaskBytes);
  }
}

VectorUse select_use(const Core& core, const Instr& instr) {
  VectorUse use;
  use.shape = lane_shape(core, instr, size_bytes(instr.dst.dtype));
  use.uses.add(instr.dst, 0, true);
  use.uses.add(instr.src[0], 1, false);
  const SelectFrom from = select_from(instr);
  if (from != SelectFrom::TensorScalar) use.uses.add(instr.src[1], 2, false);
  // source_count 2: the selection is the compare register.
  if (instr.source_count == 3 && use.shape.repeat > 0) {
    const uint64_t lanes =
        from == SelectFrom::Register ? (use.shape.repeat > 1 ? use.shape.lanes : use.shape.tail) : use.shape.total();
    use.uses.add_run(instr.src[2], 3, false, (lanes + 7) / 8);
  }
  return use;
}

void execute_select(Core& core, const Instr& instr) {
  const VectorUse use = select_use(core, instr);
  if (use.shape.repeat == 0) return;
  check_operands(core, instr, use.shape, use.uses);
  const SelectFrom from = select_from(instr);
  const uint32_t element_bytes = size_bytes(instr.dst.dtype);
  LaneJob job;
  job.lane = from == SelectFrom::TensorScalar ? lanes::table().select_scalar[element_bytes > 4 ? 0 : element_bytes]
                                              : lanes::table().select[element_bytes > 4 ? 0 : element_bytes];
  OPKIT_CHECK(job.lane != nullptr, IllegalOperand, &instr, nullptr, "Select takes half and float");
  uint64_t scalar = instr.scalar_bits[0];
  if ((instr.mode & kScalarInRegister) != 0) scalar = core.compare_mask[0] & ((1ull << 8 * element_bytes) - 1);
  job.scalars = &scalar;
  job.source_count = from == SelectFrom::TensorScalar ? 1 : 2;
  job.select_bits = reinterpret_cast<uint8_t*>(core.compare_mask);
  if (instr.source_count == 3) job.select_bits = core.at(instr.src[2]);
  if (instr.source_count == 2 && from == SelectFrom::TensorTensor) {
    job.select_bits = addressed_selection(core, instr, use.shape);
  }
  job.select_bits_restart = from == SelectFrom::Register;
  run_lanes(core, instr, use.shape, job);
}

}  // namespace opkit
