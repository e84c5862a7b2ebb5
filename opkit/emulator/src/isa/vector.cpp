// Elementwise instructions, Cast, fills, Brcb and Gather.
#include <cstring>

#include "isa/cast_int4.h"
#include "isa/execute.h"
#include "isa/saturation.h"
#include "isa/table.h"
#include "isa/vector_run.h"
#include "memory/bounds.h"

namespace opkit {
namespace {

const char* type_name(DType type) {
  static constexpr const char* kNames[] = {"half",     "bfloat16_t", "float",   "int8_t",   "uint8_t",
                                           "int16_t",  "uint16_t",   "int32_t", "uint32_t", "int64_t",
                                           "uint64_t", "bool",       "double",  "int4b_t"};
  return kNames[static_cast<size_t>(type)];
}

[[noreturn]] void fault_type(const Instr& instr, const char* what) {
  raise_fault(Fault::IllegalOperand, &instr, "`opkit isa` lists the types of each instruction",
              "%s does not take %s of %s%s%s", row_of(instr.op).name, what, type_name(instr.dst.dtype),
              instr.source_count > 0 ? " and " : "", instr.source_count > 0 ? type_name(instr.src[0].dtype) : "");
}

bool is_shift(Op op) { return op == Op::ShiftLeft || op == Op::ShiftRight; }

void check_shift(const Instr& instr) {
  if (!is_shift(instr.op)) return;
  const uint32_t width = size_bytes(instr.dst.dtype) * 8;
  const uint64_t mask = width == 32 ? 0xffffffffull : 0xffffull;
  OPKIT_CHECK((instr.scalar_bits[0] & mask) <= width, IllegalOperand, &instr, nullptr,
              "%s: a shift by %llu is outside 0 to %u", row_of(instr.op).name,
              static_cast<unsigned long long>(instr.scalar_bits[0] & mask), width);
}

/// Whether bytes of UB up to `end` are aligned and lie inside the operand's buffer: what nearly every operand's are.
bool is_plain(const Core& core, const Operand& operand, uint64_t end) {
  return operand.space == Space::UB && operand.address % kBlockBytes == 0 && operand.address >= operand.begin &&
         end <= operand.end && end <= core.space_bytes[static_cast<uint32_t>(Space::UB)];
}

/// Runs a call with a count whose operands are plain, one by one or in place: that is all there is to check then.
/// False, with nothing done, for any other call.
bool run_plain(Core& core, const Instr& instr, lanes::Lane lane, const uint64_t* scalars, bool may_wait) {
  if (instr.mask_form != MaskForm::Count || instr.count == 0 || saturates(core, instr.dst.dtype)) return false;
  uint8_t* base = core.space_base[static_cast<uint32_t>(Space::UB)];
  const Operand& dst = instr.dst;
  const uint32_t dst_bytes = size_bytes(dst.dtype);
  const uint64_t dst_end = dst.address + uint64_t{instr.count} * dst_bytes;
  if (!is_plain(core, dst, dst_end)) return false;
  const void* sources[3];
  for (uint32_t i = 0; i < instr.source_count; ++i) {
    const Operand& source = instr.src[i];
    const uint32_t bytes = size_bytes(source.dtype);
    const uint64_t end = source.address + uint64_t{instr.count} * bytes;
    if (!is_plain(core, source, end)) return false;
    const bool is_in_place = source.address == dst.address && bytes == dst_bytes;
    if (!is_in_place && source.address < dst_end && dst.address < end) return false;
    sources[i] = base + source.address;
  }
  const bool joins = may_wait && core.chain.is_open && instr.count >= Chain::kLeastCount;
  if (joins && join_chain(core, instr, lane)) return true;
  finish_chain(core);
  lane(base + dst.address, sources, scalars, instr.count);
  return true;
}

/// The same for repeats of all lanes that lie one behind the other, of one element type. The second source may be one
/// data block for all of them.
bool run_plain_repeats(const Core& core, const Instr& instr, const LaneJob& job) {
  const Operand& dst = instr.dst;
  const uint64_t lanes = kRepeatBytes / size_bytes(dst.dtype);
  if (instr.mask_form != MaskForm::Prefix || instr.mask[0] < lanes || core.mask_mode != MaskMode::Normal ||
      instr.repeat - 1 > 254 || job.saturates) {
    return false;
  }
  const auto is_dense = [](const Operand& operand) {
    return operand.block_stride == 1 && operand.repeat_stride == kBlocksPerRepeat;
  };
  const uint64_t bytes = uint64_t{instr.repeat} * kRepeatBytes;
  if (!is_dense(dst) || !is_plain(core, dst, dst.address + bytes)) return false;
  uint8_t* base = core.space_base[static_cast<uint32_t>(Space::UB)];
  const void* sources[3];
  lanes::Lane lane = job.lane;
  for (uint32_t i = 0; i < instr.source_count; ++i) {
    const Operand& source = instr.src[i];
    const bool is_block = i == 1 && job.block_lane != nullptr && source.block_stride == 0 && source.repeat_stride == 0;
    if (is_block) lane = job.block_lane;
    if (!is_block && !is_dense(source)) return false;
    const uint64_t end = source.address + (is_block ? kBlockBytes : bytes);
    if (source.dtype != dst.dtype || !is_plain(core, source, end)) return false;
    const bool is_in_place = source.address == dst.address && !is_block;
    if (!is_in_place && source.address < dst.address + bytes && dst.address < end) return false;
    sources[i] = base + source.address;
  }
  lane(base + dst.address, sources, job.scalars, instr.repeat * lanes);
  return true;
}

/// Half sources and a float destination (MulAddDst, Axpy): the sources are widened, exactly, 64 lanes at a time.
void run_widened(const Core& core, const Instr& instr, const LaneShape& shape, lanes::Lane lane) {
  const lanes::Lane widen = lanes::table().cast[static_cast<size_t>(DType::F32)][static_cast<size_t>(DType::F16)][0];
  const Operand operands[3] = {placed(shape, instr.dst), placed(shape, instr.src[0]), placed(shape, instr.src[1])};
  uint64_t scalars[2] = {0, 0};
  const void* scalar_source[1] = {&instr.scalar_bits[0]};
  widen(&scalars[0], scalar_source, nullptr, 1);
  alignas(64) uint8_t halves[kRepeatBytes];
  alignas(64) float wide[2][64];
  alignas(64) uint8_t result[kRepeatBytes];
  for (uint32_t repeat = 0; repeat < shape.repeat; ++repeat) {
    const uint32_t lanes = repeat + 1 == shape.repeat ? shape.tail : shape.active;
    for (uint32_t i = 0; i < instr.source_count; ++i) {
      gather_repeat(core, operands[i + 1], repeat, lanes, halves);
      const void* from[1] = {halves};
      widen(wide[i], from, nullptr, lanes);
    }
    gather_repeat(core, operands[0], repeat, lanes, result);
    const void* sources[2] = {wide[0], wide[1]};
    lane(result, sources, scalars, lanes);
    scatter_repeat(core, operands[0], repeat, shape, lanes, result);
  }
}

}  // namespace

bool reads_destination(Op op) {
  switch (op) {
#define VEC_BINARY(...)
#define VEC_BINARY_DST(name, ...) case Op::name:
#include "opkit/isa/vec_binary.inc"
#undef VEC_BINARY
#undef VEC_BINARY_DST
#define VEC_BINARY_SCALAR(...)
#define VEC_BINARY_SCALAR_DST(name, ...) case Op::name:
#include "opkit/isa/vec_binary_scalar.inc"
#undef VEC_BINARY_SCALAR
#undef VEC_BINARY_SCALAR_DST
    return true;
    default: return false;
  }
}

VectorUse elementwise_use(const Core& core, const Instr& instr) {
  VectorUse use;
  use.shape = lane_shape(core, instr, lane_bytes(instr));
  use.uses = lane_uses(instr, instr.source_count);
  use.uses.items[0].is_read = reads_destination(instr.op);
  return use;
}

void execute_elementwise(Core& core, const Instr& instr) {
  const lanes::Lane lane =
      lanes::table().elementwise[static_cast<size_t>(instr.op)][static_cast<size_t>(instr.dst.dtype)];
  const bool is_usual = lane != nullptr && instr.src[0].dtype == instr.dst.dtype && !is_shift(instr.op);
  const bool may_wait = instr.dst.dtype == DType::F32;
  if (is_usual && run_plain(core, instr, lane, instr.scalar_bits, may_wait)) return;
  finish_chain(core);

  LaneJob job;
  job.lane = lane;
  job.block_lane =
      lanes::table().elementwise_block[static_cast<size_t>(instr.op)][static_cast<size_t>(instr.dst.dtype)];
  job.scalars = instr.scalar_bits;
  job.source_count = instr.source_count;
  job.saturates = saturates(core, instr.dst.dtype);
  if (is_usual && run_plain_repeats(core, instr, job)) return;

  const VectorUse use = elementwise_use(core, instr);
  if (use.shape.repeat == 0) return;
  check_operands(core, instr, use.shape, use.uses);
  check_shift(instr);
  if (__builtin_expect(lane == nullptr, 0)) fault_type(instr, "tensors");
  job.reads_dst = use.uses.items[0].is_read;
  if (__builtin_expect(instr.src[0].dtype != instr.dst.dtype, 0)) {
    const bool is_widening = job.reads_dst && instr.dst.dtype == DType::F32 && instr.src[0].dtype == DType::F16;
    if (!is_widening) fault_type(instr, "a destination and a source");
    run_widened(core, instr, use.shape, lane);
    return;
  }
  run_lanes(core, instr, use.shape, job);
}

void execute_cast(Core& core, const Instr& instr) {
  const lanes::Lane lane =
      instr.mode < lanes::kRoundModes
          ? lanes::table()
                .cast[static_cast<size_t>(instr.dst.dtype)][static_cast<size_t>(instr.src[0].dtype)][instr.mode]
          : nullptr;
  const bool is_truncating = truncates(core, instr);
  const bool is_usual = lane != nullptr && !is_truncating;
  if (is_usual && run_plain(core, instr, lane, &core.deq_scale_bits, is_chain_cast(instr))) return;
  finish_chain(core);

  const VectorUse use = elementwise_use(core, instr);
  if (use.shape.repeat == 0) return;
  check_operands(core, instr, use.shape, use.uses);
  if (has_int4(instr)) return cast_int4(core, instr, use.shape);
  static constexpr const char* kModes[] = {"CAST_NONE",  "CAST_RINT",  "CAST_FLOOR", "CAST_CEIL",
                                           "CAST_ROUND", "CAST_TRUNC", "CAST_ODD",   "CAST_HYBRID"};
  OPKIT_CHECK(lane != nullptr, IllegalOperand, &instr, "see the table of supported conversions of Cast",
              "Cast: %s to %s does not take RoundMode::%s", type_name(instr.src[0].dtype), type_name(instr.dst.dtype),
              kModes[instr.mode & 7]);
  if (is_truncating) return cast_truncating(core, instr, use.shape);
  LaneJob job;
  job.saturates = saturates(core, instr.dst.dtype);
  job.lane = lane;
  job.scalars = &core.deq_scale_bits;
  job.source_count = 1;
  run_lanes(core, instr, use.shape, job);
}

void execute_fill(Core& core, const Instr& instr) {
  const VectorUse use = elementwise_use(core, instr);
  if (use.shape.repeat == 0) return;
  check_operands(core, instr, use.shape, use.uses);
  const bool is_ramp = instr.op == Op::CreateVecIndex;
  uint64_t scalars[2] = {instr.scalar_bits[0], 0};
  LaneJob job;
  job.lane = is_ramp ? lanes::table().ramp[static_cast<size_t>(instr.dst.dtype)]
                     : lanes::table().fill[size_bytes(instr.dst.dtype) > 4 ? 0 : size_bytes(instr.dst.dtype)];
  if (job.lane == nullptr) fault_type(instr, "a tensor");
  job.scalars = scalars;
  job.ramp = is_ramp ? &scalars[1] : nullptr;
  job.saturates = is_ramp && saturates(core, instr.dst.dtype);
  run_lanes(core, instr, use.shape, job);
}

VectorUse brcb_use(const Core&, const Instr& instr) {
  VectorUse use;
  use.shape = whole_shape(instr.repeat, size_bytes(instr.dst.dtype));
  use.uses.add(instr.dst, 0, true);
  use.uses.add_run(instr.src[0], 1, false, uint64_t{instr.repeat} * kBlocksPerRepeat * size_bytes(instr.dst.dtype));
  return use;
}

void execute_brcb(Core& core, const Instr& instr) {
  if (instr.repeat == 0) return;
  const VectorUse use = brcb_use(core, instr);
  check_operands(core, instr, use.shape, use.uses);
  const uint32_t element_bytes = size_bytes(instr.dst.dtype);
  const lanes::Lane fill = lanes::table().fill[element_bytes > 4 ? 0 : element_bytes];
  if (fill == nullptr) fault_type(instr, "a tensor");
  const uint8_t* from = core.at(instr.src[0]);
  for (uint32_t repeat = 0; repeat < instr.repeat; ++repeat) {
    uint8_t* to = core.at(instr.dst) + uint64_t{repeat} * instr.dst.repeat_stride * kBlockBytes;
    for (uint32_t block = 0; block < kBlocksPerRepeat; ++block, from += element_bytes) {
      uint64_t bits = 0;
      std::memcpy(&bits, from, element_bytes);
      fill(to + uint64_t{block} * instr.dst.block_stride * kBlockBytes, nullptr, &bits, kBlockBytes / element_bytes);
    }
  }
}

VectorUse gather_use(const Core& core, const Instr& instr) {
  VectorUse use;
  // Eight data blocks of results a repeat; the offsets lie one behind the other.
  use.shape = lane_shape(core, instr, size_bytes(instr.dst.dtype));
  use.uses.add(instr.dst, 0, true);
  if (use.shape.repeat > 0) {
    use.uses.add_run(instr.src[1], 2, false, use.shape.total() * sizeof(uint32_t));
  }
  return use;
}

void execute_gather(Core& core, const Instr& instr) {
  const VectorUse use = gather_use(core, instr);
  const LaneShape& shape = use.shape;
  if (shape.repeat == 0) return;
  check_operands(core, instr, shape, use.uses);
  const uint32_t element_bytes = size_bytes(instr.dst.dtype);
  Operand dst = instr.dst;
  if (shape.is_count) dst.repeat_stride = kBlocksPerRepeat;
  const uint8_t* offsets = core.at(instr.src[1]);
  alignas(64) uint8_t result[kRepeatBytes];
  for (uint32_t repeat = 0; repeat < shape.repeat; ++repeat) {
    const uint32_t lanes = repeat + 1 == shape.repeat ? shape.tail : shape.active;
    for (uint32_t lane = 0; lane < lanes; ++lane) {
      if (shape.is_bits && !shape.is_active(lane)) continue;
      uint32_t offset = 0;
      std::memcpy(&offset, offsets + (uint64_t{repeat} * shape.lanes + lane) * sizeof(uint32_t), sizeof(offset));
      const uint64_t address = instr.src[0].address + instr.scalar_bits[0] + offset;
      OPKIT_CHECK((instr.scalar_bits[0] + offset) % element_bytes == 0, Misaligned, &instr, "offsets are in bytes",
                  "Gather: element %u is at byte %llu, not a multiple of %u", repeat * shape.lanes + lane,
                  static_cast<unsigned long long>(instr.scalar_bits[0] + offset), element_bytes);
      check_bounds(core, instr, instr.src[0], address, element_bytes, false);
      std::memcpy(result + lane * element_bytes, core.at(instr.src[0].space, address), element_bytes);
    }
    scatter_repeat(core, dst, repeat, shape, lanes, result);
  }
}

}  // namespace opkit
