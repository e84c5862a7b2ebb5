/// What a SoftMaxTiling says: shapes. opkit's functions size their parts by the space they are given, so a part is all.
#pragma once

#include <cstdint>

namespace opkit::high_level {

template <typename Tiling>
constexpr void fill_softmax_tiling(Tiling& tiling, uint32_t rows, uint32_t width, uint32_t type_bytes) {
  const uint32_t column = type_bytes == 0 ? 0 : 32 / type_bytes;
  tiling.set_srcM(rows);
  tiling.set_srcK(width);
  tiling.set_srcSize(rows * width);
  tiling.set_outMaxM(rows);
  tiling.set_outMaxK(column);
  tiling.set_outMaxSize(rows * column);
  tiling.set_splitM(rows);
  tiling.set_splitK(width);
  tiling.set_splitSize(rows * width);
  tiling.set_reduceM(rows);
  tiling.set_reduceK(column);
  tiling.set_reduceSize(rows * column);
  tiling.set_rangeM(1);
}

template <typename Tiling>
constexpr Tiling softmax_tiling(uint32_t rows, uint32_t width, uint32_t type_bytes) {
  Tiling tiling{};
  fill_softmax_tiling(tiling, rows, width, type_bytes);
  return tiling;
}

}  // namespace opkit::high_level
