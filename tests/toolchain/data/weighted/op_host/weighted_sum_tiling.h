#pragma once
#include "register/tilingdata_base.h"
namespace optiling {
BEGIN_TILING_DATA_DEF(ScaleData)
TILING_DATA_FIELD_DEF(float, factor);
END_TILING_DATA_DEF
REGISTER_TILING_DATA_CLASS(ScaleDataOp, ScaleData)

BEGIN_TILING_DATA_DEF(WeightedSumTilingData)
TILING_DATA_FIELD_DEF(uint32_t, length);
TILING_DATA_FIELD_DEF_STRUCT(ScaleData, scale);
TILING_DATA_FIELD_DEF_ARR(int16_t, 3, unused)
TILING_DATA_FIELD_DEF(int64_t, offset);
END_TILING_DATA_DEF;
REGISTER_TILING_DATA_CLASS(WeightedSum, WeightedSumTilingData)
}  // namespace optiling
