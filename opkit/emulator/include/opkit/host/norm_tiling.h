/// Temporary space and tiling of the normalisations. Source: Ascend C API, high-level API, the tiling pages of these
/// functions; the sizes are opkit's own.
#pragma once

#include "opkit/host/row_space.h"
#include "opkit/host/temporary_space.h"
#include "opkit/host/vector_tiling.h"

namespace opkit::host {

/// [B, S, H], or [B, S, H, H without padding] as the functions for LayerNorm and its gradients take it, as rows.
struct NormShape {
  uint32_t batches = 1;
  uint32_t sequence = 1;
  uint32_t width = 0;
  uint32_t used = 0;

  explicit NormShape(const ge::Shape& shape) {
    const size_t dims = shape.GetDimNum(), last = dims == 4 ? 2 : dims - 1;
    if (dims == 0) return;
    width = static_cast<uint32_t>(shape.GetDim(last));
    used = static_cast<uint32_t>(shape.GetDim(dims - 1));
    if (last > 0) sequence = static_cast<uint32_t>(shape.GetDim(last - 1));
    for (size_t i = 0; i + 1 < last; ++i) batches *= static_cast<uint32_t>(shape.GetDim(i));
  }
  ge::Shape rows() const { return ge::Shape({int64_t{batches} * sequence, width}); }
};

/// Space for rows that are taken at a time, and what lasts: lists of all rows and vectors of a row.
inline void norm_space(const ge::Shape& shape, uint32_t matrices, uint32_t columns, uint32_t& most, uint32_t& least) {
  const NormShape norm(shape);
  const uint32_t lasting = (high_level::round_up(norm.batches * norm.sequence, 8) * high_level::kNormLists +
                            high_level::round_up(norm.width, 16) * high_level::kNormVectors) *
                           static_cast<uint32_t>(sizeof(float));
  most = lasting + most_row_space(norm.rows(), matrices, columns);
  least = lasting + least_row_space(norm.rows(), matrices, columns);
}
inline void norm_space(const ge::Shape& shape, uint32_t& most, uint32_t& least) {
  norm_space(shape, high_level::kNormMatrices, high_level::kNormColumns, most, least);
}

/// The last axis is padded to data blocks; `type_bytes` 0: it is so already.
template <typename Tiling>
inline void norm_tiling(const ge::Shape& shape, const ge::Shape& original, uint32_t type_bytes, Tiling& tiling) {
  const NormShape norm(shape), unpadded(original);
  tiling.set_bLength(norm.batches);
  tiling.set_sLength(norm.sequence);
  tiling.set_hLength(high_level::round_up(norm.width, type_bytes == 0 ? 1 : 32 / type_bytes));
  tiling.set_originalHLength(unpadded.used);
}

}  // namespace opkit::host

namespace AscendC {

inline void GetLayerNormMaxMinTmpSize(const TensorShape& srcShape, const uint32_t, const bool, uint32_t& maxValue,
                                      uint32_t& minValue) {
  opkit::host::norm_space(srcShape, maxValue, minValue);
}
inline void GetLayerNormMaxMinTmpSize(const TensorShape& srcShape, const uint32_t, const bool, const bool, const bool,
                                      uint32_t& maxValue, uint32_t& minValue) {
  opkit::host::norm_space(srcShape, maxValue, minValue);
}
/// The tiling functions take optiling's structs and those of AscendC::tiling.
template <typename Tiling>
inline void GetLayerNormNDTilingInfo(const TensorShape& srcShape, const uint32_t, const uint32_t typeSize, const bool,
                                     Tiling& tiling) {
  opkit::host::norm_tiling(srcShape, srcShape, typeSize, tiling);
}
template <typename Tiling>
inline void GetLayerNormNDTilingInfo(const TensorShape& srcShape, const uint32_t, const uint32_t typeSize, const bool,
                                     const bool, Tiling& tiling) {
  const opkit::host::RowShape rows(srcShape);
  tiling.set_aLength(rows.rows);
  tiling.set_rLength(opkit::high_level::round_up(rows.width, typeSize == 0 ? 1 : 32 / typeSize));
}
/// The name as it was misspelt once.
template <typename Tiling>
inline void GetLayerNormNDTillingInfo(const TensorShape& srcShape, const uint32_t stackBufferSize,
                                      const uint32_t typeSize, const bool isReuseSource, Tiling& tilling) {
  GetLayerNormNDTilingInfo(srcShape, stackBufferSize, typeSize, isReuseSource, tilling);
}

inline bool GetDeepNormMaxMinTmpSize(const TensorShape& srcShape, const uint32_t, const bool, const bool,
                                     uint32_t& maxValue, uint32_t& minValue) {
  opkit::host::norm_space(srcShape, maxValue, minValue);
  return true;
}
template <typename Tiling>
inline bool GetDeepNormTilingInfo(const TensorShape& srcShape, const TensorShape& originSrcShape, const uint32_t,
                                  const uint32_t, const bool, const bool, Tiling& tiling) {
  opkit::host::norm_tiling(srcShape, originSrcShape, 0, tiling);
  return true;
}

inline bool GetRmsNormMaxMinTmpSize(const TensorShape& srcShape, const uint32_t, uint32_t& maxValue, uint32_t& minValue,
                                    const bool = false) {
  opkit::host::norm_space(srcShape, maxValue, minValue);
  return true;
}
template <typename Tiling>
inline bool GetRmsNormTilingInfo(const TensorShape& srcShape, const TensorShape& originSrcShape, const uint32_t,
                                 const uint32_t, Tiling& tiling, const bool = false) {
  opkit::host::norm_tiling(srcShape, originSrcShape, 0, tiling);
  const opkit::host::RowShape original(originSrcShape);
  tiling.set_reciprocalOfHLength(original.width == 0 ? 0 : 1.0f / static_cast<float>(original.width));
  return true;
}

inline void GetNormalizeMaxMinTmpSize(const TensorShape& srcShape, const uint32_t, const uint32_t, const bool,
                                      const bool, const bool, uint32_t& maxValue, uint32_t& minValue) {
  opkit::host::norm_space(srcShape, maxValue, minValue);
}

inline void GetLayerNormGradMaxMinTmpSize(const TensorShape& srcShape, const uint32_t, const bool, uint32_t& maxValue,
                                          uint32_t& minValue) {
  opkit::host::norm_space(srcShape, opkit::high_level::kNormGradMatrices, opkit::high_level::kNormGradColumns, maxValue,
                          minValue);
}
template <typename Tiling>
inline void GetLayerNormGradNDTilingInfo(const TensorShape srcShape, const uint32_t, const uint32_t typeSize,
                                         const bool, Tiling& tiling) {
  opkit::host::norm_tiling(srcShape, srcShape, typeSize, tiling);
}
inline void GetLayerNormGradBetaMaxMinTmpSize(const TensorShape& srcShape, const uint32_t typeSize,
                                              const bool isReuseSource, uint32_t& maxValue, uint32_t& minValue) {
  GetLayerNormGradMaxMinTmpSize(srcShape, typeSize, isReuseSource, maxValue, minValue);
}
template <typename Tiling>
inline void GetLayerNormGradBetaNDTilingInfo(const TensorShape srcShape, const uint32_t, const uint32_t typeSize,
                                             const bool, Tiling& tiling) {
  opkit::host::norm_tiling(srcShape, srcShape, typeSize, tiling);
}

inline void GetWelfordUpdateMaxMinTmpSize(const TensorShape& srcShape, const uint32_t, const uint32_t, const bool,
                                          const bool, uint32_t& maxValue, uint32_t& minValue) {
  opkit::host::temporary_space(srcShape, opkit::high_level::kWelfordSpares, sizeof(float), maxValue, minValue);
}
inline void GetWelfordFinalizeMaxMinTmpSize(const TensorShape& srcShape, const uint32_t, const bool, uint32_t& maxValue,
                                            uint32_t& minValue) {
  // With counts in a tensor; as many accumulators as the shape has elements.
  const int64_t size = srcShape.GetShapeSize();
  const uint32_t count = size > 0 ? static_cast<uint32_t>(size) : 1;
  const uint32_t weights = opkit::high_level::round_up(count, 8) * static_cast<uint32_t>(sizeof(float));
  maxValue = minValue = weights + opkit::high_level::welford_finalize_bytes(count);
}

}  // namespace AscendC
