/// Sizes that kernels and host code name alike.
#pragma once

#include <cstdint>

namespace AscendC {

constexpr uint32_t ONE_BLK_SIZE = 32;  ///< a block, in bytes
constexpr uint32_t BLOCK_CUBE = 16;    ///< rows and columns of a fractal of the cube unit

}  // namespace AscendC
