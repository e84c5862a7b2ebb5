/// Tiling of a matrix multiplication on one core. Source: Ascend C API, Matmul tiling, MatmulApiTiling.
#pragma once

#include "lib/matmul/matmul_tiling_base.h"

namespace matmul_tiling {

class MatmulApiTiling : public MatmulApiTilingBase {
 public:
  using MatmulApiTilingBase::MatmulApiTilingBase;
  MatmulApiTiling() = default;
};

/// The temporary buffers that a tiling's Matmul takes. Returns 0.
inline int32_t MatmulGetTmpBufSizeV2(AscendC::tiling::TCubeTiling& tiling, SysTilingTempBufSize& bufSize) {
  bufSize = {tiling.transLength, tiling.shareL1Size, tiling.shareL0CSize};
  return 0;
}

inline int32_t MatmulGetTmpBufSize(optiling::TCubeTiling& tiling, SysTilingTempBufSize& bufSize) {
  bufSize = {tiling.get_transLength(), tiling.get_shareL1Size(), tiling.get_shareL0CSize()};
  return 0;
}

}  // namespace matmul_tiling

using matmul_tiling::MatmulGetTmpBufSize;
using matmul_tiling::MatmulGetTmpBufSizeV2;
