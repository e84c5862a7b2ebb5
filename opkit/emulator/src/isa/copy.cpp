// Copy between tensors in UB. Source: Ascend C API, UB to UB with a mask.
#include <cstring>

#include "isa/execute.h"
#include "isa/vector_run.h"

namespace opkit {

/// In counter mode the mask is the number of elements of each repeat, unlike that of every other instruction.
/// Source: Copy, constraints
VectorUse copy_use(const Core& core, const Instr& instr) {
  VectorUse use = elementwise_use(core, instr);
  if (core.mask_mode == MaskMode::Normal) return use;
  const uint64_t count = instr.mask_form == MaskForm::Register ? core.mask[0] : instr.mask[0];
  use.shape = LaneShape();
  use.shape.repeat = count == 0 ? 0 : instr.repeat;
  use.shape.lanes = use.shape.active = use.shape.tail = static_cast<uint32_t>(count);
  return use;
}

void execute_copy(Core& core, const Instr& instr) {
  const VectorUse use = copy_use(core, instr);
  if (use.shape.repeat == 0) return;
  check_operands(core, instr, use.shape, use.uses);
  if (core.mask_mode == MaskMode::Normal) {
    LaneJob job;
    job.lane =
        size_bytes(instr.dst.dtype) == 2
            ? [](void* dst, const void* const* from, const uint64_t*, size_t n) { std::memmove(dst, from[0], n * 2); }
            : [](void* dst, const void* const* from, const uint64_t*, size_t n) { std::memmove(dst, from[0], n * 4); };
    job.source_count = 1;
    run_lanes(core, instr, use.shape, job);
    return;
  }
  const uint64_t bytes = uint64_t{use.shape.active} * size_bytes(instr.dst.dtype);
  for (uint64_t repeat = 0; repeat < use.shape.repeat; ++repeat) {
    uint8_t* to = core.at(instr.dst) + repeat * instr.dst.repeat_stride * kBlockBytes;
    const uint8_t* from = core.at(instr.src[0]) + repeat * instr.src[0].repeat_stride * kBlockBytes;
    for (uint64_t at = 0; at < bytes; at += kBlockBytes) {
      const uint64_t length = bytes - at < kBlockBytes ? bytes - at : kBlockBytes;
      std::memmove(to + at * instr.dst.block_stride, from + at * instr.src[0].block_stride, length);
    }
  }
}

}  // namespace opkit
