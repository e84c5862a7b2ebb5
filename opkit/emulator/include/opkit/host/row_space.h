/// Shapes as functions of rows take them, and the temporary space of some of them.
#pragma once

#include <cstdint>

#include "graph/tensor.h"
#include "opkit/high_level/spares.h"

namespace opkit::host {

/// A shape as rows of its last dimension.
struct RowShape {
  uint32_t rows = 0;
  uint32_t width = 0;

  explicit RowShape(const ge::Shape& shape) {
    const size_t dims = shape.GetDimNum();
    if (dims == 0 || shape.GetShapeSize() <= 0) return;
    width = static_cast<uint32_t>(shape.GetDim(dims - 1));
    rows = static_cast<uint32_t>(shape.GetShapeSize()) / width;
  }
};

/// Bytes for `rows` rows of floats, as high_level/rows.h lays them out.
inline uint32_t row_space_bytes(uint32_t rows, uint32_t width, uint32_t matrices, uint32_t columns) {
  const uint32_t padded = high_level::round_up(width, 16);
  return high_level::row_space_floats(rows, padded, matrices, columns) * static_cast<uint32_t>(sizeof(float));
}

/// The space that all rows need, but no more than functions take at a time.
inline uint32_t most_row_space(const ge::Shape& shape, uint32_t matrices, uint32_t columns) {
  const RowShape rows(shape);
  constexpr uint32_t kMostRows = high_level::kMostRows;
  return row_space_bytes(rows.rows < kMostRows ? rows.rows : kMostRows, rows.width, matrices, columns);
}
/// The space of `least_rows` rows.
inline uint32_t least_row_space(const ge::Shape& shape, uint32_t matrices, uint32_t columns, uint32_t least_rows = 1) {
  const RowShape rows(shape);
  return row_space_bytes(rows.rows < least_rows ? rows.rows : least_rows, rows.width, matrices, columns);
}

}  // namespace opkit::host
