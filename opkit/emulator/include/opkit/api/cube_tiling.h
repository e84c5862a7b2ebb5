/// TCubeTiling as kernels and the tiling functions of the plain-struct style see it. Source: Matmul tiling,
/// TCubeTiling.
#pragma once

#include <cstdint>

namespace AscendC::tiling {

struct TCubeTiling {
#define CUBE_TILING_FIELD(name) int32_t name = 0;
#include "opkit/host/cube_tiling_fields.inc"
#undef CUBE_TILING_FIELD
};

}  // namespace AscendC::tiling

using AscendC::tiling::TCubeTiling;
