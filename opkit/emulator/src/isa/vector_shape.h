/// Which lanes of which repeats a vector instruction works on, and which bytes its operands touch.
#pragma once

#include "core/core.h"

namespace opkit {

/// Masks of every form, reduced to one. Lanes are elements of the widest operand.
struct LaneShape {
  uint32_t repeat = 0;    ///< 0: nothing to do
  uint32_t lanes = 0;     ///< in a whole repeat
  uint32_t active = 0;    ///< the first lanes that take part, in every repeat but the last; not for is_bits
  uint32_t tail = 0;      ///< in the last
  bool is_bits = false;   ///< `bits` says which lanes take part, in every repeat alike
  bool is_count = false;  ///< MaskForm::Count: strides are not looked at
  uint64_t bits[2] = {0, 0};

  uint64_t total() const { return uint64_t{repeat - 1} * lanes + tail; }
  bool is_active(uint32_t lane) const { return (bits[lane / 64] >> lane % 64 & 1) != 0; }
};

/// The shape of an instruction whose widest element has `element_bytes`. Faults IllegalOperand on repeat > 255.
LaneShape lane_shape(const Core& core, const Instr& instr, uint32_t element_bytes);

/// All lanes of `repeat` repeats; for instructions that do not look at the mask.
LaneShape whole_shape(uint32_t repeat, uint32_t element_bytes);

/// Bytes of a widest element: the lanes of a repeat are counted in these.
uint32_t lane_bytes(const Instr& instr);

/// How an operand's bytes follow from the shape.
enum class Layout : uint8_t {
  Lanes,    ///< an element a lane, by block and repeat strides
  Run,      ///< `bytes` from the start
  Repeats,  ///< `bytes` a repeat, `stride_bytes` from repeat to repeat
};

struct OperandUse {
  const Operand* operand = nullptr;
  uint8_t index = 0;  ///< 0: dst, 1 to 3: sources
  Layout layout = Layout::Lanes;
  bool is_write = false;
  bool is_read = false;
  uint32_t alignment = kBlockBytes;
  uint64_t bytes = 0;
  uint64_t stride_bytes = 0;
};

struct OperandUses {
  OperandUse items[4];
  uint32_t count = 0;

  OperandUse& add(const Operand& operand, uint8_t index, bool is_write) {
    OperandUse& use = items[count++];
    use.operand = &operand;
    use.index = index;
    use.is_write = is_write;
    use.is_read = !is_write;
    return use;
  }
  OperandUse& add_run(const Operand& operand, uint8_t index, bool is_write, uint64_t bytes) {
    OperandUse& use = add(operand, index, is_write);
    use.layout = Layout::Run;
    use.bytes = bytes;
    return use;
  }
};

/// True when the lanes of an operand are one run of shape.total() elements.
inline bool is_contiguous(const LaneShape& shape, const Operand& operand) {
  if (shape.is_count) return true;
  if (shape.is_bits || (operand.block_stride != 1 && span_bytes(operand.dtype, shape.active) > kBlockBytes)) {
    return false;
  }
  return shape.repeat == 1 ||
         (shape.active == shape.lanes &&
          operand.repeat_stride * kBlockBytes == span_bytes(operand.dtype, shape.lanes) && operand.block_stride == 1);
}

/// Faults unless every operand lies in UB, is aligned and touches only bytes of its own buffer.
void check_operands(const Core& core, const Instr& instr, const LaneShape& shape, const OperandUses& uses);

/// What instructions on lanes alone use: dst and `source_count` sources, all by lanes.
OperandUses lane_uses(const Instr& instr, uint32_t source_count);

}  // namespace opkit
