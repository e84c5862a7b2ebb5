/// Temporary space of reductions, CumSum, data filtering and padding, and the tiling of the latter. Source: Ascend C
/// API, high-level API, the pages of these names; the sizes are opkit's own.
#pragma once

#include "opkit/api/vector_tiling.h"
#include "opkit/high_level/types.h"
#include "opkit/host/row_space.h"
#include "opkit/host/temporary_space.h"
#include "opkit/host/vector_tiling.h"

namespace opkit::host {

/// One row's: for products a copy of it and eight data blocks beside. No function reduces the axes of other patterns.
inline uint32_t reduce_space_bytes(const ge::Shape& shape, AscendC::ReducePattern pattern) {
  if (pattern > AscendC::ReducePattern::R) {
    opkit_log(LogLevel::Error, "", "", 0, "the space of a reduction: its pattern is AR, RA or R");
    return 0;
  }
  const RowShape rows(shape);
  const uint32_t floats = high_level::round_up(rows.width, 8) + 64;
  return high_level::reduction_bytes(rows.width) + floats * 4;
}

}  // namespace opkit::host

namespace AscendC {

#define OPKIT_REDUCE_SPACE(Name)                                                                                       \
  inline void GetReduce##Name##MaxMinTmpSize(const TensorShape& srcShape, const TensorDataType, ReducePattern pattern, \
                                             bool, bool, uint32_t& maxValue, uint32_t& minValue) {                     \
    maxValue = minValue = opkit::host::reduce_space_bytes(srcShape, pattern);                                          \
  }
OPKIT_REDUCE_SPACE(Sum)
OPKIT_REDUCE_SPACE(Max)
OPKIT_REDUCE_SPACE(Min)
OPKIT_REDUCE_SPACE(Mean)
OPKIT_REDUCE_SPACE(Prod)
#undef OPKIT_REDUCE_SPACE

inline void GetSumMaxMinTmpSize(const uint32_t n, const uint32_t, const bool, uint32_t& maxSize, uint32_t& minSize) {
  maxSize = minSize = opkit::high_level::reduction_bytes(n);
}
/// In another type: a row in float and its column, and the list of means of as many rows as are taken at a time.
inline void GetMeanMaxMinTmpSize(const uint32_t n, const uint32_t srcTypeSize, const uint32_t accTypeSize, const bool,
                                 uint32_t& maxSize, uint32_t& minSize) {
  minSize = opkit::high_level::reduction_bytes(n);
  if (accTypeSize > srcTypeSize)
    minSize = opkit::host::row_space_bytes(1, n, 1, 1) + opkit::high_level::kMeanRows * sizeof(float);
  maxSize = minSize;
}

/// Half is summed in float, row by row.
inline void GetMeanTmpBufferFactorSize(const uint32_t typeSize, uint32_t& maxLiveNodeCount, uint32_t& extraBuffer) {
  maxLiveNodeCount = opkit::host::space_factor(typeSize, opkit::host::float_tensors(typeSize, 1, 1));
  extraBuffer = opkit::high_level::kMeanRows * sizeof(float);
}

/// Arange takes no temporary tensor; what kernels make of this has a data block.
inline void GetArangeMaxMinTmpSize(uint32_t& maxValue, uint32_t& minValue) { maxValue = minValue = 32; }
inline void GetArithProgressionMaxMinTmpSize(uint32_t& maxValue, uint32_t& minValue) {
  GetArangeMaxMinTmpSize(maxValue, minValue);
}

inline void GetCumSumMaxMinTmpSize(const TensorShape& srcShape, const uint32_t typeSize, const bool isLastAxis,
                                   const bool, uint32_t& maxValue, uint32_t& minValue) {
  const opkit::host::RowShape rows(srcShape);
  if (isLastAxis) {
    maxValue = opkit::high_level::cumulated_bytes(opkit::high_level::round_up(rows.rows, 8), rows.width, typeSize < 4);
    minValue = opkit::high_level::cumulated_bytes(8, rows.width, typeSize < 4);
  } else {
    maxValue = minValue = 2 * rows.width * static_cast<uint32_t>(sizeof(float));
  }
}

inline uint32_t GetDropOutMinTmpSize(const TensorShape&, const uint32_t, const bool) {
  return opkit::high_level::selected_bytes(opkit::high_level::kMaskElements, 2);
}
inline uint32_t GetDropOutMaxTmpSize(const TensorShape& srcShape, const uint32_t, const bool) {
  const int64_t size = srcShape.GetShapeSize();
  const uint32_t elements =
      opkit::high_level::round_up(size > 0 ? static_cast<uint32_t>(size) : 1, opkit::high_level::kMaskElements);
  return opkit::high_level::selected_bytes(elements, 2);
}
inline void GetDropOutMaxMinTmpSize(const TensorShape& srcShape, const uint32_t typeSize, const bool isReuseSource,
                                    uint32_t& maxValue, uint32_t& minValue) {
  maxValue = GetDropOutMaxTmpSize(srcShape, typeSize, isReuseSource);
  minValue = GetDropOutMinTmpSize(srcShape, typeSize, isReuseSource);
}

/// The functions for Select, under its two names.
#define OPKIT_SELECT_SPACE(Name)                                                                                    \
  inline uint32_t Get##Name##MinTmpSize(const TensorShape&, const TensorShape&, const uint32_t, const TensorShape&, \
                                        const uint32_t maskTypeSize, const bool) {                                  \
    return opkit::high_level::selected_bytes(opkit::high_level::kMaskElements, maskTypeSize < 4 ? 2 : 4);           \
  }                                                                                                                 \
  inline uint32_t Get##Name##MaxTmpSize(const TensorShape&, const TensorShape&, const uint32_t,                     \
                                        const TensorShape& maskShape, const uint32_t maskTypeSize, const bool) {    \
    const int64_t size = maskShape.GetShapeSize();                                                                  \
    const uint32_t elements =                                                                                       \
        opkit::high_level::round_up(size > 0 ? static_cast<uint32_t>(size) : 1, opkit::high_level::kMaskElements);  \
    return opkit::high_level::selected_bytes(elements, maskTypeSize < 4 ? 2 : 4);                                   \
  }                                                                                                                 \
  inline void Get##Name##MaxMinTmpSize(const TensorShape& src0Shape, const TensorShape& src1Shape,                  \
                                       const uint32_t srcTypeSize, const TensorShape& maskShape,                    \
                                       const uint32_t maskTypeSize, const bool isReuseMask, uint32_t& maxValue,     \
                                       uint32_t& minValue) {                                                        \
    maxValue = Get##Name##MaxTmpSize(src0Shape, src1Shape, srcTypeSize, maskShape, maskTypeSize, isReuseMask);      \
    minValue = Get##Name##MinTmpSize(src0Shape, src1Shape, srcTypeSize, maskShape, maskTypeSize, isReuseMask);      \
  }
OPKIT_SELECT_SPACE(Select)
OPKIT_SELECT_SPACE(SelectWithBytesMask)
#undef OPKIT_SELECT_SPACE

/// An offset for each element of a row, padded.
inline void GetPadMaxMinTmpSize(const TensorShape& srcShape, const uint32_t, uint32_t& maxValue, uint32_t& minValue) {
  const opkit::host::RowShape rows(srcShape);
  maxValue = minValue = opkit::high_level::round_up(rows.width + 16, 8) * static_cast<uint32_t>(sizeof(uint32_t));
}
template <typename Tiling>
inline void PadTilingFunc(const TensorShape srcShape, const TensorShape oriSrcShape, const uint32_t stackBufferSize,
                          const uint32_t, Tiling& tiling) {
  const opkit::host::RowShape rows(srcShape), original(oriSrcShape);
  tiling.set_srcHeight(rows.rows);
  tiling.set_srcWidth(rows.width);
  tiling.set_srcOriWidth(original.width);
  tiling.set_tmpBufferBytes(stackBufferSize);
}
/// A bit for each element of a row.
inline void GetUnPadMaxMinTmpSize(const platform_ascendc::PlatformAscendC&, const TensorShape& srcShape, const uint32_t,
                                  uint32_t& maxValue, uint32_t& minValue) {
  const opkit::host::RowShape rows(srcShape);
  maxValue = minValue = opkit::high_level::round_up(rows.width / 8 + 4, 32);
}
template <typename Tiling>
inline void UnPadTilingFunc(const TensorShape srcShape, const uint32_t stackBufferSize, const uint32_t,
                            Tiling& tiling) {
  const opkit::host::RowShape rows(srcShape);
  tiling.set_srcHeight(rows.rows);
  tiling.set_srcWidth(rows.width);
  tiling.set_tmpBufferBytes(stackBufferSize);
}

}  // namespace AscendC
