// VectorPadding, an instruction of the inference series. Source: Ascend C API, data filling.
#include <cstring>

#include "isa/execute.h"
#include "isa/table.h"
#include "isa/vector_run.h"

namespace opkit {
namespace {

constexpr uint8_t kRightSide = 4;  // bit of the mode; below it lies padMode
enum PadMode : uint8_t { kNeighbour, kMirror, kMirrorWithoutEdge };

/// The element of a data block of `count` that becomes element `i`; `count` itself stands for a zero.
uint32_t source_of(uint8_t mode, uint32_t i, uint32_t count) {
  const bool is_right = (mode & kRightSide) != 0;
  switch (mode & 3) {
    case kNeighbour: return is_right ? count - 1 : 0;
    case kMirror: return count - 1 - i;
    default:  // the edge itself is left out, which leaves the far end empty
      if (is_right) return i == count - 1 ? count : count - 2 - i;
      return i == 0 ? count : count - i;
  }
}

}  // namespace

/// The mask decides what is written; the source is read in whole data blocks.
VectorUse padding_use(const Core& core, const Instr& instr) {
  VectorUse use;
  const uint32_t element_bytes = size_bytes(instr.dst.dtype);
  use.shape = lane_shape(core, instr, element_bytes);
  if (use.shape.repeat == 0) return use;
  use.uses.add(instr.dst, 0, true);
  const Operand& source = instr.src[0];
  if (use.shape.is_count) {
    const uint64_t bytes = use.shape.total() * element_bytes;
    use.uses.add_run(source, 1, false, (bytes + kBlockBytes - 1) / kBlockBytes * kBlockBytes);
    return use;
  }
  OperandUse& read = use.uses.add(source, 1, false);
  read.layout = Layout::Repeats;
  read.bytes = uint64_t{(kBlocksPerRepeat - 1) * source.block_stride + 1} * kBlockBytes;
  read.stride_bytes = uint64_t{source.repeat_stride} * kBlockBytes;
  return use;
}

void execute_padding(Core& core, const Instr& instr) {
  const VectorUse use = padding_use(core, instr);
  const LaneShape& shape = use.shape;
  OPKIT_CHECK((instr.mode & 3) <= kMirrorWithoutEdge, IllegalOperand, &instr, "padMode is 0, 1 or 2",
              "VectorPadding: padMode %u is over 2", instr.mode & 3);
  if (shape.repeat == 0) return;
  check_operands(core, instr, shape, use.uses);
  const uint32_t element_bytes = size_bytes(instr.dst.dtype);
  const uint32_t per_block = kBlockBytes / element_bytes;
  const Operand source = placed(shape, instr.src[0]);
  const Operand dst = placed(shape, instr.dst);
  alignas(64) uint8_t blocks[kRepeatBytes];
  alignas(64) uint8_t result[kRepeatBytes] = {};
  for (uint32_t repeat = 0; repeat < shape.repeat; ++repeat) {
    const uint32_t lanes = repeat + 1 == shape.repeat ? shape.tail : shape.active;
    const uint32_t whole = (lanes + per_block - 1) / per_block * per_block;
    gather_repeat(core, source, repeat, whole, blocks);
    for (uint32_t lane = 0; lane < lanes; ++lane) {
      const uint32_t from = source_of(instr.mode, lane % per_block, per_block);
      uint8_t* to = result + lane * element_bytes;
      const uint8_t* block = blocks + lane / per_block * kBlockBytes;
      if (from == per_block) {
        std::memset(to, 0, element_bytes);
      } else {
        std::memcpy(to, block + from * element_bytes, element_bytes);
      }
    }
    scatter_repeat(core, dst, repeat, shape, lanes, result);
  }
}

}  // namespace opkit
