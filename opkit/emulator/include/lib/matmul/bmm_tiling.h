/// Tiling of a matrix multiplication on several cores, and of batches. Source: Ascend C API, Matmul tiling,
/// MultiCoreMatmulTiling and BatchMatmulTiling.
#pragma once

#include "lib/matmul/matmul_tiling.h"

namespace matmul_tiling {

class MultiCoreMatmulTiling : public MatmulApiTilingBase {
 public:
  MultiCoreMatmulTiling() { problem_.is_multi_core = true; }
  explicit MultiCoreMatmulTiling(const platform_ascendc::PlatformAscendC& ascendcPlatform)
      : MatmulApiTilingBase(ascendcPlatform) {
    problem_.is_multi_core = true;
  }
  explicit MultiCoreMatmulTiling(const PlatformInfo& platform) : MatmulApiTilingBase(platform) {
    problem_.is_multi_core = true;
  }

  /// Cores that may be used: cube cores, or vector cores where those start the multiplication.
  int32_t SetDim(int32_t dim) {
    if (dim <= 0) return fail("SetDim", "the number of cores is not positive");
    problem_.core_limit = dim;
    return 0;
  }
  int32_t SetSingleShape(int32_t singleMIn = -1, int32_t singleNIn = -1, int32_t singleKIn = -1) {
    if (!are_sizes({singleMIn, singleNIn, singleKIn})) {
      return fail("SetSingleShape", "a size is neither positive nor -1");
    }
    problem_.single_m = singleMIn;
    problem_.single_n = singleNIn;
    problem_.single_k = singleKIn;
    return 0;
  }
  int32_t SetSingleRange(int32_t maxM = -1, int32_t maxN = -1, int32_t maxK = -1, int32_t minM = -1, int32_t minN = -1,
                         int32_t minK = -1) {
    if (!are_sizes({maxM, maxN, maxK, minM, minN, minK})) {
      return fail("SetSingleRange", "a size is neither positive nor -1");
    }
    if ((maxM > 0 && minM > maxM) || (maxN > 0 && minN > maxN) || (maxK > 0 && minK > maxK)) {
      return fail("SetSingleRange", "a least size is more than the largest");
    }
    copy(problem_.single_max, maxM, maxN, maxK);
    copy(problem_.single_min, minM, minN, minK);
    return 0;
  }
  /// 0 and -1: as the tiling chooses.
  int32_t SetAlignSplit(int32_t alignM, int32_t alignN, int32_t alignK) {
    if (std::min({alignM, alignN, alignK}) < -1) return fail("SetAlignSplit", "an alignment is below -1");
    copy(problem_.single_align, alignM, alignN, alignK);
    return 0;
  }
  void EnableMultiCoreSplitK(bool flag) { problem_.splits_k = flag; }
  void SetSplitK(bool flag) { EnableMultiCoreSplitK(flag); }

  /// After GetTiling.
  int32_t GetSingleShape(int32_t& shapeM, int32_t& shapeN, int32_t& shapeK) const {
    shapeM = solved_.singleCoreM;
    shapeN = solved_.singleCoreN;
    shapeK = solved_.singleCoreK;
    return shapeM > 0 ? 0 : fail("GetSingleShape", "call GetTiling first");
  }
  int32_t GetCoreNum(int32_t& dim, int32_t& mDim, int32_t& nDim) const {
    dim = solved_.usedCoreNum;
    mDim = cores_.m;
    nDim = cores_.n;
    return dim > 0 ? 0 : fail("GetCoreNum", "call GetTiling first");
  }

 private:
  static void copy(int32_t (&into)[3], int32_t m, int32_t n, int32_t k) {
    into[0] = m;
    into[1] = n;
    into[2] = k;
  }
};

class BatchMatmulTiling : public MatmulApiTilingBase {
 public:
  using MatmulApiTilingBase::MatmulApiTilingBase;
  BatchMatmulTiling() = default;

  int32_t SetSingleShape(int32_t singleMIn = -1, int32_t singleNIn = -1, int32_t singleKIn = -1) {
    if (!are_sizes({singleMIn, singleNIn, singleKIn})) {
      return fail("SetSingleShape", "a size is neither positive nor -1");
    }
    problem_.single_m = singleMIn;
    problem_.single_n = singleNIn;
    problem_.single_k = singleKIn;
    return 0;
  }
  int32_t GetCoreNum(int32_t& dim, int32_t& mDim, int32_t& nDim, int32_t& batchCoreM, int32_t& batchCoreN) const {
    dim = solved_.usedCoreNum;
    mDim = cores_.m;
    nDim = cores_.n;
    batchCoreM = solved_.batchM;
    batchCoreN = solved_.batchN;
    return dim > 0 ? 0 : fail("GetCoreNum", "call GetTiling first");
  }
};

inline int32_t MultiCoreMatmulGetTmpBufSizeV2(AscendC::tiling::TCubeTiling& tiling, SysTilingTempBufSize& bufSize) {
  return MatmulGetTmpBufSizeV2(tiling, bufSize);
}
inline int32_t BatchMatmulGetTmpBufSizeV2(AscendC::tiling::TCubeTiling& tiling, SysTilingTempBufSize& bufSize) {
  return MatmulGetTmpBufSizeV2(tiling, bufSize);
}
inline int32_t MultiCoreMatmulGetTmpBufSize(optiling::TCubeTiling& tiling, SysTilingTempBufSize& bufSize) {
  return MatmulGetTmpBufSize(tiling, bufSize);
}
inline int32_t BatchMatmulGetTmpBufSize(optiling::TCubeTiling& tiling, SysTilingTempBufSize& bufSize) {
  return MatmulGetTmpBufSize(tiling, bufSize);
}

}  // namespace matmul_tiling

using matmul_tiling::BatchMatmulGetTmpBufSize;
using matmul_tiling::BatchMatmulGetTmpBufSizeV2;
using matmul_tiling::MultiCoreMatmulGetTmpBufSize;
using matmul_tiling::MultiCoreMatmulGetTmpBufSizeV2;
