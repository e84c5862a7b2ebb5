/// What all operators of the library share.
#pragma once

#include <cstdint>

namespace shares {

/// Defined in common/src.
int64_t per_core(int64_t count, int64_t cores);

}  // namespace shares
