/// How much temporary space quantisation and Broadcast take: Get...MaxMinTmpSize and Get...TmpBufferFactorSize. Source:
/// Ascend C API, high-level API, the pages of these names; the numbers are those of opkit's functions.
#pragma once

#include <algorithm>

#include "opkit/high_level/conversion_space.h"
#include "opkit/host/temporary_space.h"

namespace opkit::host {

inline uint32_t elements_of(const ge::Shape& shape) {
  const int64_t size = shape.GetShapeSize();
  return size > 0 ? static_cast<uint32_t>(size) : 1;
}
inline uint32_t row_of(const ge::Shape& shape) {
  const size_t dimensions = shape.GetDimNum();
  const int64_t row = dimensions == 0 ? 1 : shape.GetDim(dimensions - 1);
  return row > 0 ? static_cast<uint32_t>(row) : 1;
}
constexpr uint32_t align_up(uint64_t value, uint32_t to) { return static_cast<uint32_t>((value + to - 1) / to * to); }

/// Bytes of a number that AscendAntiQuant computes with.
inline uint32_t anti_quant_bytes(ge::DataType output) { return output == ge::DT_FLOAT16 ? 2 : 4; }

}  // namespace opkit::host

namespace AscendC {

inline void GetAscendDequantMaxMinTmpSize(const TensorShape& srcShape, const uint32_t typeSize, uint32_t& maxValue,
                                          uint32_t& minValue) {
  (void)typeSize;  // whole numbers of 32 bits only
  opkit::host::temporary_space(srcShape, opkit::high_level::kDequantAreas, sizeof(float), maxValue, minValue);
}
inline void GetAscendDequantTmpBufferFactorSize(const TensorShape& srcShape, uint32_t& maxLiveNodeCount,
                                                uint32_t& extraBuf) {
  (void)srcShape;
  maxLiveNodeCount = opkit::high_level::kDequantAreas;
  extraBuf = 0;
}

inline void GetAscendQuantMaxMinTmpSize(const TensorShape& srcShape, const uint32_t typeSize, uint32_t& maxValue,
                                        uint32_t& minValue) {
  (void)typeSize;  // computed in half
  using namespace opkit::high_level;
  constexpr uint32_t kElementBytes = kQuantAreas * 2;
  minValue = kElementBytes * kQuantPart;
  maxValue = kElementBytes * opkit::host::align_up(opkit::host::elements_of(srcShape), kQuantPart);
}
/// For elements of half; those of float are twice as large, so that the space is more than enough.
inline void GetAscendQuantTmpBufferFactorSize(uint32_t& maxLiveNodeCount, uint32_t& extraBuf) {
  maxLiveNodeCount = opkit::high_level::kQuantAreas;
  extraBuf = 0;
}

inline void GetAscendAntiQuantMaxMinTmpSize(const TensorShape& srcShape, const TensorShape& scaleShape,
                                            bool isTranspose, TensorDataType inputDataType,
                                            TensorDataType outputDataType, uint32_t& maxValue, uint32_t& minValue) {
  (void)scaleShape, (void)isTranspose, (void)inputDataType;
  using namespace opkit::high_level;
  const uint32_t element_bytes = opkit::host::anti_quant_bytes(outputDataType);
  const uint32_t areas = anti_quant_areas(element_bytes == 2);
  const uint32_t row_bytes = opkit::host::row_of(srcShape) * element_bytes;
  minValue = areas * kAntiQuantAreaBytes;
  maxValue = areas * opkit::host::align_up(std::max(row_bytes, kAntiQuantAreaBytes), kAntiQuantAreaBytes);
}
inline uint32_t GetAscendAntiQuantMaxTmpSize(const TensorShape& srcShape, const TensorShape& scaleShape,
                                             bool isTranspose, TensorDataType inputDataType,
                                             TensorDataType outputDataType) {
  uint32_t most = 0, least = 0;
  GetAscendAntiQuantMaxMinTmpSize(srcShape, scaleShape, isTranspose, inputDataType, outputDataType, most, least);
  return most;
}
inline uint32_t GetAscendAntiQuantMinTmpSize(const TensorShape& srcShape, const TensorShape& scaleShape,
                                             bool isTranspose, TensorDataType inputDataType,
                                             TensorDataType outputDataType) {
  uint32_t most = 0, least = 0;
  GetAscendAntiQuantMaxMinTmpSize(srcShape, scaleShape, isTranspose, inputDataType, outputDataType, most, least);
  return least;
}
/// In multiples of the input, which are bytes.
inline void GetAscendAntiQuantTmpBufferFactorSize(const TensorShape& srcShape, const TensorShape& scaleShape,
                                                  bool isTranspose, TensorDataType inputDataType,
                                                  TensorDataType outputDataType, uint32_t& maxLiveNodeCount,
                                                  uint32_t& extraBuf) {
  (void)srcShape, (void)scaleShape, (void)isTranspose, (void)inputDataType;
  const uint32_t element_bytes = opkit::host::anti_quant_bytes(outputDataType);
  const uint32_t areas = opkit::high_level::anti_quant_areas(element_bytes == 2);
  maxLiveNodeCount = areas * element_bytes;
  extraBuf = areas * opkit::high_level::kAntiQuantAreaBytes;
}

inline void GetBroadCastMaxMinTmpSize(const platform_ascendc::PlatformAscendC& ascendcPlatform,
                                      const TensorShape& srcShape, const TensorShape& dstShape, uint32_t typeSize,
                                      const bool isReuseSource, uint32_t& maxValue, uint32_t& minValue) {
  (void)ascendcPlatform, (void)isReuseSource;
  using namespace opkit::high_level;
  maxValue = minValue = 0;
  const size_t dimensions = dstShape.GetDimNum();
  const bool is_column = dimensions > 0 && srcShape.GetDimNum() == dimensions && srcShape.GetDim(dimensions - 1) == 1 &&
                         dstShape.GetDim(dimensions - 1) > 1;
  if (!is_column || typeSize == 0) return;  // copies alone
  const uint64_t columns = opkit::host::row_of(dstShape);
  const uint64_t rows = opkit::host::elements_of(dstShape) / columns;
  const uint64_t unit = broadcast_unit(typeSize);
  minValue = static_cast<uint32_t>(broadcast_column_bytes(std::min(rows, unit), columns, typeSize));
  const uint64_t most = std::min<uint64_t>((rows + unit - 1) / unit * unit, kMostBroadcastRows);
  maxValue = static_cast<uint32_t>(broadcast_column_bytes(std::max(most, unit), columns, typeSize));
}

}  // namespace AscendC
