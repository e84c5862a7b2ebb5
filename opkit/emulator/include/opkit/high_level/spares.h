/// Sizes of temporary space that functions of the high-level library and the host's Get...TmpSize functions agree on.
#pragma once

#include <cstdint>

namespace opkit::high_level {

/// A part begins at a multiple of a repeat of floats, so that its tensors stay aligned.
constexpr uint32_t kPartElements = 64;

// Tensors of temporary space beside converted sources; for other functions they are in elementwise.inc.
constexpr uint32_t kExpSpares = 2;
constexpr uint32_t kSwiGLUSpares = 2;
constexpr uint32_t kSwishSpares = 1;
constexpr uint32_t kAxpySpares = 1;
constexpr uint32_t kWelfordSpares = 3;
constexpr uint32_t kGeluSpares = 1;
constexpr uint32_t kFasterGeluV2Spares = 2;
/// One more where a scalar takes the place of a tensor.
constexpr uint32_t kPowerSpares = 4;
constexpr uint32_t kIntegerPowerSpares = 5;

// Rows of softmax in float, and columns: maxima, sums, the factor of earlier sums, what is read, conversions.
constexpr uint32_t kSoftmaxMatrices = 1;
constexpr uint32_t kSoftmaxGradMatrices = 3;
constexpr uint32_t kSoftmaxColumns = 5;
// SoftmaxFlashV3 has a place for sums of blocks, and means beside the columns.
constexpr uint32_t kSoftmaxV3Matrices = 2;
constexpr uint32_t kSoftmaxV3Columns = 9;

// Normalisations: rows in float, columns; lists of one number for all rows, vectors of one row.
constexpr uint32_t kNormMatrices = 2;
constexpr uint32_t kNormColumns = 3;
constexpr uint32_t kNormLists = 2;
constexpr uint32_t kNormVectors = 2;
constexpr uint32_t kNormGradMatrices = 4;
constexpr uint32_t kNormGradColumns = 5;

/// Rows that functions of rows take at a time; an instruction spreads eight numbers a repeat, 255 times.
constexpr uint32_t kMostRows = 1024;

constexpr uint32_t round_up(uint32_t value, uint32_t unit) { return (value + unit - 1) / unit * unit; }

/// Rows that Mean in another type takes at a time.
constexpr uint32_t kMeanRows = 64;

/// What a reduction of one row of `count` elements needs.
constexpr uint32_t reduction_bytes(uint32_t count) { return round_up(2 * (count / 64 + 1), 8) * 4; }

/// What WelfordFinalize needs for `count` accumulators: weighted and shifted means, a data block for the mean, and what
/// their sums need. Counts in a tensor take a row of float more.
constexpr uint32_t welford_finalize_bytes(uint32_t count) {
  return (2 * round_up(count, kPartElements) + 8) * 4 + reduction_bytes(count);
}

/// Rows that CumSum takes at a time along the last axis: in eights, a matrix or two of floats, and two lists of
/// offsets.
constexpr uint32_t cumulated_bytes(uint32_t rows, uint32_t width, bool is_converted) {
  return (rows * width * (is_converted ? 2 : 1) + rows + width) * 4;
}
constexpr uint32_t cumulated_rows(uint32_t space_bytes, uint32_t rows, uint32_t width, bool is_converted) {
  uint32_t part = round_up(rows, 8);
  while (part > 0 && cumulated_bytes(part, width, is_converted) > space_bytes) part -= 8;
  return part;
}

/// Mask elements that Select and DropOut take at a time: each a number of `number_bytes` and a bit.
constexpr uint32_t kMaskElements = 256;
constexpr uint32_t selected_bytes(uint32_t elements, uint32_t number_bytes) {
  return elements * number_bytes + elements / 8;
}
constexpr uint32_t selected_elements(uint32_t space_bytes, uint32_t number_bytes) {
  return space_bytes / selected_bytes(kMaskElements, number_bytes) * kMaskElements;
}

/// What TopK needs to sort rows of `inner` elements: values, indices and pairs, for one row with the pairs twice, or
/// for all rows of the small mode at once with a pattern.
constexpr uint32_t topk_normal_bytes(uint32_t inner) { return inner * (4 + 4 + 8 + 8); }
constexpr uint32_t topk_small_bytes(uint32_t rows) { return rows * 32 * (4 + 4 + 8) + 64; }

/// What TransData needs for images of `height` times `width` elements of 16 bits: 16 channels of one, and one more.
constexpr uint32_t trans_data_bytes(uint32_t height, uint32_t width) { return 17 * round_up(height * width, 16) * 2; }

/// What Transpose by a tiling needs for `rows` rows (S): sixteen columns of them, and sixteen more where these are
/// joined of several parts; `type` is TransposeType's number.
constexpr uint32_t transpose_bytes(uint32_t type, uint32_t rows, uint32_t type_bytes) {
  const uint32_t columns = type <= 2 ? 16 : 32;
  return type == 7 ? 32 : columns * rows * type_bytes;
}

/// Floats that functions of rows need for `rows` of them: `matrices` copies of the rows, `columns` of one data block a
/// row, one of an element a row, and what reductions need.
constexpr uint32_t row_space_floats(uint32_t rows, uint32_t width, uint32_t matrices, uint32_t columns) {
  const uint32_t list = round_up(rows, 8);
  const uint32_t work = round_up(2 * (width / 64 + 1), 8);
  return list * (1 + 8 * columns) + rows * round_up(width, 8) * matrices + work;
}

}  // namespace opkit::high_level
