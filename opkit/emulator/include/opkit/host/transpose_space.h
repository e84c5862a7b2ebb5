/// Temporary space and tiling of Transpose. Source: Ascend C API, high-level API, tensor transformation; the sizes are
/// opkit's own.
#pragma once

#include "opkit/high_level/spares.h"
#include "opkit/host/temporary_space.h"
#include "opkit/host/vector_tiling.h"

namespace AscendC {

/// `srcShape` is [B, N, S, H/N], or [H, W] of a matrix (7); `transposeTypeIn` is TransposeType's number.
inline void GetTransposeMaxMinTmpSize(const TensorShape& srcShape, const uint32_t typeSize,
                                      const uint32_t transposeTypeIn, uint32_t& maxValue, uint32_t& minValue) {
  const uint32_t rows = srcShape.GetDimNum() == 4 ? static_cast<uint32_t>(srcShape.GetDim(2)) : 0;
  maxValue = minValue = opkit::high_level::transpose_bytes(transposeTypeIn, rows, typeSize);
}
template <typename Tiling>
inline void GetTransposeTilingInfo(const TensorShape& srcShape, const uint32_t, const uint32_t typeSize,
                                   const uint32_t transposeTypeIn, Tiling& tiling) {
  const auto extent = [&](size_t axis) {
    return axis < srcShape.GetDimNum() ? static_cast<uint32_t>(srcShape.GetDim(axis)) : 0;
  };
  const uint32_t block = 32 / typeSize;
  tiling.set_param0(block);
  tiling.set_param1(extent(0));
  tiling.set_param2(extent(1));
  tiling.set_param3(transposeTypeIn == 7 ? extent(0) / 16 : extent(2));
  tiling.set_param4(transposeTypeIn == 7 ? extent(0) * block * typeSize / 32 : extent(3));
  tiling.set_param5(transposeTypeIn == 7 ? extent(1) / block : 0);
}

/// Their older names.
inline void GetConfusionTransposeMaxMinTmpSize(const TensorShape& srcShape, const uint32_t typeSize,
                                               const uint32_t transposeTypeIn, uint32_t& maxValue, uint32_t& minValue) {
  GetTransposeMaxMinTmpSize(srcShape, typeSize, transposeTypeIn, maxValue, minValue);
}
template <typename Tiling>
inline void GetConfusionTransposeTilingInfo(const TensorShape& srcShape, const uint32_t stackBufferSize,
                                            const uint32_t typeSize, const uint32_t transposeTypeIn, Tiling& tiling) {
  GetTransposeTilingInfo(srcShape, stackBufferSize, typeSize, transposeTypeIn, tiling);
}
template <typename Tiling>
inline void GetConfusionTransposeOnlyTilingInfo(const TensorShape& srcShape, const uint32_t stackBufferSize,
                                                const uint32_t typeSize, Tiling& tiling) {
  GetTransposeTilingInfo(srcShape, stackBufferSize, typeSize, 7, tiling);
}

}  // namespace AscendC
