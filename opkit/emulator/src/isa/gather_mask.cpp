// Gatherb and GatherMask. Source: Ascend C API, gather and scatter; compare and select.
#include <cstring>

#include "isa/execute.h"
#include "isa/table.h"
#include "memory/bounds.h"

namespace opkit {
namespace {

constexpr uint8_t kCounterMode = 1;  // bit 0 of Instr::mode; above it the number of the built-in pattern, 0: a tensor

// vreducev2, behind GatherMask, has its mode and its mask in the registers.
bool uses_register(const Instr& instr) { return instr.mask_form == MaskForm::Register; }
bool is_counter(const Core& core, const Instr& instr) {
  return uses_register(instr) ? core.mask_mode == MaskMode::Counter : (instr.mode & kCounterMode) != 0;
}
uint64_t mask_of(const Core& core, const Instr& instr) { return uses_register(instr) ? core.mask[0] : instr.mask[0]; }
uint32_t pattern_of(const Instr& instr) { return instr.mode >> 1; }

/// Normal mode handles 256 bytes a repeat. Counter mode handles `mask` elements a repeat on A2; on the inference
/// series `mask` elements altogether, and the repeat times are not looked at.
LaneShape gather_mask_shape(const Core& core, const Instr& instr) {
  const uint32_t lanes = kRepeatBytes / size_bytes(instr.dst.dtype);
  LaneShape shape;
  if (!is_counter(core, instr)) return whole_shape(instr.repeat, size_bytes(instr.dst.dtype));
  const uint32_t mask = static_cast<uint32_t>(mask_of(core, instr));
  if (core.chip->traits().gathers_by_repeat) {
    shape.repeat = instr.repeat;
    shape.lanes = shape.active = shape.tail = mask;
    return shape;
  }
  shape.repeat = (mask + lanes - 1) / lanes;
  shape.lanes = shape.active = lanes;
  shape.tail = mask - (shape.repeat - 1) * lanes;
  return shape;
}

bool is_picked(uint32_t pattern, const uint8_t* bits, uint32_t lane) {
  switch (pattern) {
    case 0: return (bits[lane / 8] >> lane % 8 & 1) != 0;
    case 1: return lane % 2 == 0;
    case 2: return lane % 2 == 1;
    case 7: return true;
    default: return lane % 4 == pattern - 3;
  }
}

/// The bits of a repeat's pattern in memory, null for a built-in one.
const uint8_t* pattern_bits(const Core& core, const Instr& instr, uint32_t repeat) {
  if (pattern_of(instr) != 0) return nullptr;
  return core.at(instr.src[1]) + uint64_t{repeat} * instr.src[1].repeat_stride * kBlockBytes;
}

uint32_t lanes_of(const LaneShape& shape, uint32_t repeat) {
  return repeat + 1 == shape.repeat ? shape.tail : shape.active;
}

/// Elements that the pattern picks. The pattern's bytes are inside UB.
uint64_t count_picked(const Core& core, const Instr& instr, const LaneShape& shape) {
  uint64_t count = 0;
  for (uint32_t repeat = 0; repeat < shape.repeat; ++repeat) {
    const uint8_t* bits = pattern_bits(core, instr, repeat);
    for (uint32_t lane = 0; lane < lanes_of(shape, repeat); ++lane) count += is_picked(pattern_of(instr), bits, lane);
  }
  return count;
}

}  // namespace

VectorUse gather_blocks_use(const Core&, const Instr& instr) {
  VectorUse use;
  use.shape = whole_shape(instr.repeat, size_bytes(instr.dst.dtype));
  use.uses.add(instr.dst, 0, true);
  use.uses.add_run(instr.src[1], 2, false, uint64_t{instr.repeat} * kBlocksPerRepeat * sizeof(uint32_t));
  return use;
}

void execute_gather_blocks(Core& core, const Instr& instr) {
  if (instr.repeat == 0) return;
  const VectorUse use = gather_blocks_use(core, instr);
  check_operands(core, instr, use.shape, use.uses);
  const uint8_t* offsets = core.at(instr.src[1]);
  uint8_t gathered[kRepeatBytes];
  for (uint32_t repeat = 0; repeat < instr.repeat; ++repeat) {
    for (uint32_t block = 0; block < kBlocksPerRepeat; ++block) {
      const uint32_t index = repeat * kBlocksPerRepeat + block;
      uint32_t offset = 0;
      std::memcpy(&offset, offsets + index * sizeof(offset), sizeof(offset));
      const uint64_t address = instr.src[0].address + offset;
      OPKIT_CHECK(address % kBlockBytes == 0, Misaligned, &instr, "offsets are in bytes and multiples of 32",
                  "Gatherb: data block %u is at byte %u of the source, which is not at a multiple of 32", index,
                  offset);
      check_bounds(core, instr, instr.src[0], address, kBlockBytes, false);
      std::memcpy(gathered + block * kBlockBytes, core.at(instr.src[0].space, address), kBlockBytes);
    }
    uint8_t* to = core.at(instr.dst) + uint64_t{repeat} * instr.dst.repeat_stride * kBlockBytes;
    for (uint32_t block = 0; block < kBlocksPerRepeat; ++block) {
      std::memcpy(to + uint64_t{block} * instr.dst.block_stride * kBlockBytes, gathered + block * kBlockBytes,
                  kBlockBytes);
    }
  }
}

VectorUse gather_mask_use(const Core& core, const Instr& instr) {
  VectorUse use;
  use.shape = gather_mask_shape(core, instr);
  if (use.shape.repeat == 0 || use.shape.lanes == 0) {
    use.shape.repeat = 0;
    return use;
  }
  use.uses.add(instr.src[0], 1, false);
  bool is_readable = true;
  if (pattern_of(instr) == 0) {
    OperandUse& pattern = use.uses.add(instr.src[1], 2, false);
    pattern.layout = Layout::Repeats;
    pattern.bytes = (use.shape.active + 7) / 8;
    pattern.stride_bytes = uint64_t{instr.src[1].repeat_stride} * kBlockBytes;
    const uint64_t last = instr.src[1].address + (use.shape.repeat - 1) * pattern.stride_bytes + pattern.bytes;
    is_readable = instr.src[1].space == Space::UB && last <= core.space_bytes[static_cast<uint32_t>(Space::UB)];
  }
  if (is_readable) {
    use.uses.add_run(instr.dst, 0, true, count_picked(core, instr, use.shape) * size_bytes(instr.dst.dtype));
  }
  return use;
}

void execute_gather_mask(Core& core, const Instr& instr) {
  const uint32_t element_bytes = size_bytes(instr.dst.dtype);
  const uint32_t last_pattern = core.chip->traits().last_pattern;
  OPKIT_CHECK(instr.source_count == 2 || (pattern_of(instr) >= 1 && pattern_of(instr) <= last_pattern), IllegalOperand,
              &instr, "the patterns are listed on the page of GatherMask",
              "GatherMask: pattern %u is not one of 1 to %u", pattern_of(instr), last_pattern);
  const bool counts = is_counter(core, instr);
  const uint64_t mask = mask_of(core, instr);
  OPKIT_CHECK(!counts || mask > 0, IllegalOperand, &instr, "pass the number of elements of a repeat",
              "GatherMask: the mask of the counter mode is 0");
  OPKIT_CHECK(instr.repeat <= kMaxRepeat || counts, IllegalOperand, &instr, "split the call",
              "GatherMask: repeat times %u is over %u", instr.repeat, kMaxRepeat);
  OPKIT_CHECK(!counts || instr.src[0].block_stride == 1 || mask * element_bytes <= kRepeatBytes, Unspecified, &instr,
              "use a block stride of 1", "GatherMask: more than 256 bytes a repeat with a block stride of %u",
              instr.src[0].block_stride);
  const VectorUse use = gather_mask_use(core, instr);
  const LaneShape& shape = use.shape;
  core.gather_mask_count = 0;
  if (!uses_register(instr)) core.mask_mode = MaskMode::Normal;  // Source: GatherMask, constraints
  if (shape.repeat == 0) return;
  check_operands(core, instr, shape, use.uses);

  const uint32_t pattern = pattern_of(instr);
  const uint32_t per_block = kBlockBytes / element_bytes;
  uint8_t* to = core.at(instr.dst);
  uint8_t picked[kRepeatBytes];
  for (uint32_t repeat = 0; repeat < shape.repeat; ++repeat) {
    const uint8_t* from = core.at(instr.src[0]) + uint64_t{repeat} * instr.src[0].repeat_stride * kBlockBytes;
    const uint8_t* bits = pattern_bits(core, instr, repeat);
    // 256 bytes are read before any of what they give is written: dst may be src0.
    const uint32_t lanes = lanes_of(shape, repeat);
    for (uint32_t first = 0; first < lanes; first += kRepeatBytes / element_bytes) {
      const uint32_t last = lanes - first < kRepeatBytes / element_bytes ? lanes : first + kRepeatBytes / element_bytes;
      uint32_t bytes = 0;
      for (uint32_t lane = first; lane < last; ++lane) {
        if (!is_picked(pattern, bits, lane)) continue;
        const uint64_t block = uint64_t{lane / per_block} * instr.src[0].block_stride * kBlockBytes;
        std::memcpy(picked + bytes, from + block + lane % per_block * element_bytes, element_bytes);
        bytes += element_bytes;
      }
      std::memcpy(to, picked, bytes);
      to += bytes;
    }
  }
  core.gather_mask_count = static_cast<uint64_t>(to - core.at(instr.dst)) / element_bytes;
}

}  // namespace opkit
