/// The saturation modes that kernels choose: how results end that their type cannot hold. Source: SetSaturationFlag.
#pragma once

#include "isa/vector_shape.h"

namespace opkit {

/// Whether results of this type end at the largest number instead of infinity.
inline bool saturates(const Core& core, DType type) {
  return core.saturates_floats && (type == DType::F16 || type == DType::BF16);
}

/// Makes infinities the largest number of their sign, and NaN zero. For half, bfloat16 and float.
void saturate_floats(DType type, uint8_t* values, uint64_t count);

/// Faults where an instruction's halves would have to saturate between its steps.
void check_saturates_nothing(const Core& core, const Instr& instr);

/// Whether a Cast drops the high bits of what its destination cannot hold.
bool truncates(const Core& core, const Instr& instr);

/// Cast from numbers to integers whose high bits are dropped.
void cast_truncating(const Core& core, const Instr& instr, const LaneShape& shape);

}  // namespace opkit
