#pragma once

#include "register/tilingdata_base.h"
#include "tiling/tiling_api.h"

namespace optiling {

BEGIN_TILING_DATA_DEF(MultipliedTiling)
TILING_DATA_FIELD_DEF(float, slope);
TILING_DATA_FIELD_DEF_STRUCT(TCubeTiling, product);
END_TILING_DATA_DEF;
REGISTER_TILING_DATA_CLASS(Multiplied, MultipliedTiling)

}  // namespace optiling
