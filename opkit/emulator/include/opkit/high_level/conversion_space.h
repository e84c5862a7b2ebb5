/// Sizes of temporary space of quantisation and Broadcast, for the functions and for the host's Get...TmpSize.
#pragma once

#include <cstdint>

#include "opkit/instr.h"

namespace opkit::high_level {

/// AscendDequant: tensors of floats, for factors and for products.
constexpr uint32_t kDequantAreas = 2;

/// AscendQuant: tensors of halves, for sums, scales and offsets, of so many elements or multiples of them.
constexpr uint32_t kQuantAreas = 3;
constexpr uint32_t kQuantPart = 256;

/// AscendAntiQuant: tensors for offsets and scales, and for bfloat16_t also for sums and the halves before them. One
/// holds a data block for each of so many factors, or more.
constexpr uint32_t anti_quant_areas(bool is_half) { return is_half ? 2 : 4; }
constexpr uint32_t kAntiQuantFactors = 16;
constexpr uint32_t kAntiQuantAreaBytes = kAntiQuantFactors * kBlockBytes;

/// Parts of a matrix begin at multiples of so many rows, so that they are whole data blocks whatever a row's length.
constexpr uint32_t broadcast_unit(uint32_t element_bytes) { return kBlockBytes / element_bytes; }

/// What the instructions that go over rows can repeat, in whole units of every type.
constexpr uint32_t kMostBroadcastRows = 224;

constexpr uint64_t whole_blocks(uint64_t bytes) { return (bytes + kBlockBytes - 1) / kBlockBytes * kBlockBytes; }

/// Bytes of temporary space for `rows` rows, from one element each, of `columns` elements of `element_bytes`.
constexpr uint64_t broadcast_column_bytes(uint64_t rows, uint64_t columns, uint32_t element_bytes) {
  const uint64_t bytes = element_bytes == 1 ? 2 : element_bytes;
  const uint64_t padded_row = columns * bytes % kBlockBytes == 0 ? 0 : whole_blocks(columns * bytes);
  // Bytes: halves of the column and of the result.
  const uint64_t halves = element_bytes == 1 ? whole_blocks(rows * 2) + whole_blocks(rows * columns * 2) : 0;
  return rows * (kBlockBytes + padded_row) + halves;
}

}  // namespace opkit::high_level
