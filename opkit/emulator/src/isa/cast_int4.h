/// Cast between half and int4b_t.
#pragma once

#include "isa/vector_shape.h"

namespace opkit {

bool has_int4(const Instr& instr);

/// Bounds were checked.
void cast_int4(const Core& core, const Instr& instr, const LaneShape& shape);

}  // namespace opkit
