/// How many columns of a table a core has at once when elements move at places: the one rule of the torch device.
#pragma once

#include <algorithm>

#include "plans.h"

namespace opkit::kernels {

/// Whether elements are put by a mask for each place, as IndexedBlocks does.
inline bool is_by_masks(const ElementsPlan& p) {
  return p.action == ElementsPlan::kPut && p.indices[0].size <= kMostMasks &&
         (p.element_bytes == 2 || p.element_bytes == 4);
}

/// The columns of the table of which a core has all places at once, and how many such blocks there are; 0 where they do
/// not fit a core or would not help. `PlacedMove.block_width` of the compiler has the same rule, and
/// tests/compiler/test_places.py holds the two equal.
inline uint32_t block_width(const ElementsPlan& p, int64_t cores, int64_t& units) {
  constexpr int64_t kMostWidth = 1024;
  const int64_t places = p.indices[0].size, size = p.element_bytes;
  const bool picks = p.action == ElementsPlan::kGather;
  const auto kind = static_cast<Kind>(p.kind);
  const bool is_float = kind == Kind::F32 || kind == Kind::F16 || kind == Kind::BF16;
  if (p.index_count != 1 || p.has_rows || p.plain_strides[0] != 1 || p.indices[0].strides[0] != 1) return 0;
  if ((picks && size != 2 && size != 4) || (p.action == ElementsPlan::kAdd && !is_float)) return 0;
  int64_t outer = 1;
  for (uint32_t d = 2; d < kCopyDims; ++d) outer *= p.sizes[d];
  if (p.table_strides[0] == 0) {
    units = outer * p.sizes[1];
    return picks && places * size <= kBlockBytes && p.indices[0].table_stride == 1 && p.sizes[0] >= 64;
  }
  if (p.table_strides[0] != 1 || p.table_strides[1] != 0 || p.sizes[1] < 2) return 0;
  // A row of the table, and of what is beside it, begins behind the one before.
  if (p.indices[0].table_stride < p.sizes[0] || p.plain_strides[1] < p.sizes[0] ||
      p.indices[0].strides[1] < p.sizes[0]) {
    return 0;
  }
  const int64_t unit = is_by_masks(p) ? 64 : 32 / std::min<int64_t>(size, 4);
  const int64_t largest = std::min(kBlockBytes / (places * size), kMostWidth) / unit * unit;
  const int64_t fair = (p.sizes[0] * outer + cores - 1) / cores;
  const int64_t width = std::min(largest, std::max(unit, (fair + unit - 1) / unit * unit));
  if (width > 0) units = outer * ((p.sizes[0] + width - 1) / width);
  return static_cast<uint32_t>(width);
}

}  // namespace opkit::kernels
