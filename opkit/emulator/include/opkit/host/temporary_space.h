/// How much temporary space the element-wise functions of the high-level library take: the host-side functions
/// Get...MaxMinTmpSize and Get...TmpBufferFactorSize. They answer for opkit's functions, from the table that those are
/// made of: the most is space for all elements at once, the least is space for one part. Source: Ascend C API,
/// high-level API, the pages of these names; the numbers are opkit's own.
#pragma once

#include <cstdint>

#include "graph/tensor.h"
#include "opkit/high_level/spares.h"
#include "tiling/platform/platform_ascendc.h"

namespace AscendC {

using TensorShape = ge::Shape;
using TensorDataType = ge::DataType;

}  // namespace AscendC

namespace opkit::host {

using high_level::kPartElements;

/// `tensors` of `element_bytes` beside each element.
inline void temporary_space(const ge::Shape& shape, uint32_t tensors, uint32_t element_bytes, uint32_t& most,
                            uint32_t& least) {
  const int64_t size = shape.GetShapeSize();
  const uint32_t elements = size > 0 ? static_cast<uint32_t>(size) : 1;
  least = tensors * kPartElements * element_bytes;
  most = (elements + kPartElements - 1) / kPartElements * least;
}

/// Half is converted to float, one tensor for each of `sources`.
constexpr uint32_t float_tensors(uint32_t type_bytes, uint32_t sources, uint32_t spares) {
  return spares + (type_bytes < sizeof(float) ? sources : 0);
}

/// How many times the size of the data.
constexpr uint32_t space_factor(uint32_t type_bytes, uint32_t tensors) {
  return type_bytes == 0 ? 0 : tensors * static_cast<uint32_t>(sizeof(float)) / type_bytes;
}

}  // namespace opkit::host

namespace AscendC {

/// `Name` as the functions' names have it; one or two sources.
#define OPKIT_TEMPORARY_SPACE(Name, sources, spares)                                                                   \
  inline void Get##Name##MaxMinTmpSize(const TensorShape& srcShape, const uint32_t typeSize, const bool,               \
                                       uint32_t& maxValue, uint32_t& minValue) {                                       \
    const uint32_t tensors = ::opkit::host::float_tensors(typeSize, sources, spares);                                  \
    ::opkit::host::temporary_space(srcShape, tensors, sizeof(float), maxValue, minValue);                              \
  }                                                                                                                    \
  inline void Get##Name##TmpBufferFactorSize(const uint32_t typeSize, uint32_t& maxLiveNodeCount,                      \
                                             uint32_t& extraBuf) {                                                     \
    maxLiveNodeCount = ::opkit::host::space_factor(typeSize, ::opkit::host::float_tensors(typeSize, sources, spares)); \
    extraBuf = 0;                                                                                                      \
  }
#define HIGH_LEVEL_UNARY(name, function, spares) OPKIT_TEMPORARY_SPACE(name, 1, spares)
#define HIGH_LEVEL_BINARY(name, function, spares) OPKIT_TEMPORARY_SPACE(name, 2, spares)
#include "opkit/high_level/elementwise.inc"
OPKIT_TEMPORARY_SPACE(Axpy, 2, ::opkit::high_level::kAxpySpares)
OPKIT_TEMPORARY_SPACE(Clamp, 0, 0)
// Two whose parameters have another order: the pages of these names.
namespace detail {
OPKIT_TEMPORARY_SPACE(SwiGLU, 2, ::opkit::high_level::kSwiGLUSpares)
}  // namespace detail
inline void GetSwiGLUMaxMinTmpSize(const TensorShape& srcShape, const uint32_t typeSize, uint32_t& maxValue,
                                   uint32_t& minValue, const bool isReuseSource) {
  detail::GetSwiGLUMaxMinTmpSize(srcShape, typeSize, isReuseSource, maxValue, minValue);
}
using detail::GetSwiGLUTmpBufferFactorSize;
inline void GetRoundMaxMinTmpSize(const platform_ascendc::PlatformAscendC&, const TensorShape& srcShape,
                                  const uint32_t typeSize, const bool isReuseSource, uint32_t& maxValue,
                                  uint32_t& minValue) {
  GetRoundMaxMinTmpSize(srcShape, typeSize, isReuseSource, maxValue, minValue);
}
inline void GetRoundTmpBufferFactorSize(const platform_ascendc::PlatformAscendC&, const uint32_t typeSize,
                                        uint32_t& maxLiveNodeCount, uint32_t& extraBuf) {
  GetRoundTmpBufferFactorSize(typeSize, maxLiveNodeCount, extraBuf);
}
#undef OPKIT_TEMPORARY_SPACE

inline bool GetExpMaxMinTmpSize(const TensorShape& srcShape, const uint32_t typeSize, const bool, uint32_t& maxValue,
                                uint32_t& minValue) {
  opkit::host::temporary_space(srcShape, opkit::host::float_tensors(typeSize, 1, opkit::high_level::kExpSpares),
                               sizeof(float), maxValue, minValue);
  return true;
}
inline void GetExpTmpBufferFactorSize(const uint32_t typeSize, uint32_t& maxLiveNodeCount, uint32_t& extraBuffer) {
  const uint32_t tensors = opkit::host::float_tensors(typeSize, 1, opkit::high_level::kExpSpares);
  maxLiveNodeCount = opkit::host::space_factor(typeSize, tensors);
  extraBuffer = 0;
}

/// Of 16-bit integers, which stay what they are.
inline void GetXorMaxMinTmpSize(const TensorShape& srcShape, const uint32_t typeSize, const bool, uint32_t& maxValue,
                                uint32_t& minValue) {
  opkit::host::temporary_space(srcShape, 1, typeSize, maxValue, minValue);
}
inline void GetXorTmpBufferFactorSize(const uint32_t, uint32_t& maxLiveNodeCount, uint32_t& extraBuffer) {
  maxLiveNodeCount = 1;
  extraBuffer = 0;
}

inline void GetSiluTmpSize(const TensorShape& srcShape, const uint32_t typeSize, const bool, uint32_t& maxValue,
                           uint32_t& minValue) {
  opkit::host::temporary_space(srcShape, opkit::host::float_tensors(typeSize, 1, opkit::high_level::kSwishSpares),
                               sizeof(float), maxValue, minValue);
}
inline void GetSwishTmpSize(const TensorShape& srcShape, const uint32_t typeSize, const bool isReuseSource,
                            uint32_t& maxValue, uint32_t& minValue) {
  GetSiluTmpSize(srcShape, typeSize, isReuseSource, maxValue, minValue);
}

/// For Gelu, FasterGelu and FasterGeluV2.
inline void GetGeluMaxMinTmpSize(const TensorShape& srcShape, const uint32_t typeSize, uint32_t& maxValue,
                                 uint32_t& minValue) {
  const uint32_t tensors = opkit::host::float_tensors(typeSize, 1, opkit::high_level::kFasterGeluV2Spares);
  opkit::host::temporary_space(srcShape, tensors, sizeof(float), maxValue, minValue);
}
inline uint32_t GetGeluMaxTmpSize(const TensorShape& srcShape, const uint32_t typeSize) {
  uint32_t most = 0, least = 0;
  GetGeluMaxMinTmpSize(srcShape, typeSize, most, least);
  return most;
}
inline uint32_t GetGeluMinTmpSize(const TensorShape& srcShape, const uint32_t typeSize) {
  uint32_t most = 0, least = 0;
  GetGeluMaxMinTmpSize(srcShape, typeSize, most, least);
  return least;
}

/// A shape of one element stands for a scalar, which takes a tensor of its own.
inline void GetPowerMaxMinTmpSize(const TensorShape& srcShape1, const TensorShape& srcShape2, const bool typeIsInt,
                                  const uint32_t typeSize, const bool, uint32_t& maxValue, uint32_t& minValue) {
  const TensorShape& larger = srcShape1.GetShapeSize() > srcShape2.GetShapeSize() ? srcShape1 : srcShape2;
  const uint32_t spares = (typeIsInt ? opkit::high_level::kIntegerPowerSpares : opkit::high_level::kPowerSpares) + 1;
  opkit::host::temporary_space(larger, opkit::host::float_tensors(typeSize, 2, spares), sizeof(float), maxValue,
                               minValue);
}
inline void GetPowerTmpBufferFactorSize(const bool, const bool, const bool typeIsInt, const uint32_t typeSize,
                                        uint32_t& maxLiveNodeCount, uint32_t& extraBuffer) {
  const uint32_t spares = (typeIsInt ? opkit::high_level::kIntegerPowerSpares : opkit::high_level::kPowerSpares) + 1;
  maxLiveNodeCount = opkit::host::space_factor(typeSize, opkit::host::float_tensors(typeSize, 2, spares));
  extraBuffer = 0;
}

}  // namespace AscendC
