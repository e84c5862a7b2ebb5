/// Temporary space and tiling of TopK and Sort. Source: Ascend C API, high-level API, sorting; the sizes are opkit's
/// own.
#pragma once

#include "opkit/high_level/types.h"
#include "opkit/host/temporary_space.h"
#include "opkit/host/vector_tiling.h"

namespace AscendC {

inline bool GetTopKMaxMinTmpSize(const platform_ascendc::PlatformAscendC&, const int32_t inner, const int32_t outter,
                                 const bool, const bool, enum TopKMode mode, const bool, const uint32_t,
                                 uint32_t& maxValue, uint32_t& minValue) {
  if (inner <= 0 || outter <= 0) return false;
  maxValue = minValue = mode == TopKMode::TOPK_NSMALL
                            ? opkit::high_level::topk_small_bytes(static_cast<uint32_t>(outter))
                            : opkit::high_level::topk_normal_bytes(static_cast<uint32_t>(inner));
  return true;
}
/// Fills in sizes of data; what else a TopkTiling holds says how the vendor's function proceeds.
template <typename Tiling>
inline bool TopKTilingFunc(const platform_ascendc::PlatformAscendC& ascendcPlatform, const int32_t inner,
                           const int32_t outter, const int32_t k, const uint32_t dataTypeSize, const bool isInitIndex,
                           enum TopKMode mode, const bool isLargest, Tiling& topKTiling) {
  uint32_t most = 0, least = 0;
  if (!GetTopKMaxMinTmpSize(ascendcPlatform, inner, outter, false, isInitIndex, mode, isLargest, dataTypeSize, most,
                            least)) {
    return false;
  }
  topKTiling.set_tmpLocalSize(static_cast<int32_t>(least));
  topKTiling.set_allDataSize(inner * outter);
  topKTiling.set_innerDataSize(inner);
  topKTiling.set_sortRepeat(static_cast<uint32_t>(inner / 32));
  topKTiling.set_kAlignFourBytes((k + 7) / 8 * 8);
  topKTiling.set_kAlignTwoBytes((k + 15) / 16 * 16);
  return true;
}

/// Sort's temporary tensor is as large as its result: a pair of 8 bytes for each element.
inline void GetSortMaxMinTmpSize(const TensorShape& srcShape, TensorDataType, TensorDataType, bool, const SortConfig&,
                                 uint32_t& maxValue, uint32_t& minValue) {
  const int64_t size = srcShape.GetShapeSize();
  maxValue = minValue = size > 0 ? static_cast<uint32_t>(size) * 8 : 0;
}

/// The same, in bytes as Concat's page says; Sort's names no unit. Concat takes none here, and what is given for it is
/// as large.
inline uint32_t GetSortTmpSize(const platform_ascendc::PlatformAscendC&, const uint32_t elemCount, const uint32_t) {
  return elemCount * 8;
}
inline uint32_t GetConcatTmpSize(const platform_ascendc::PlatformAscendC&, const uint32_t elemCount, const uint32_t) {
  return elemCount * 8;
}

/// Of the shape that is NCDHW.
inline bool GetTransDataMaxMinTmpSize(const platform_ascendc::PlatformAscendC&, const TensorShape& srcShape,
                                      const TensorShape& dstShape, const TensorDataType, const TransDataConfig& config,
                                      uint32_t& maxValue, uint32_t& minValue) {
  const TensorShape& plain = config.srcFormat == DataFormat::NCDHW ? srcShape : dstShape;
  if (plain.GetDimNum() != 5) return false;
  maxValue = minValue = opkit::high_level::trans_data_bytes(static_cast<uint32_t>(plain.GetDim(3)),
                                                            static_cast<uint32_t>(plain.GetDim(4)));
  return true;
}

}  // namespace AscendC
