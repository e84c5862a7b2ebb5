/// The tiling structs of vector functions of the high-level library, as tiling functions fill them.
#pragma once

#include "opkit/api/vector_tiling.h"
#include "register/tilingdata_base.h"

namespace optiling {

#if defined(__CCE_AICORE__)
// Programs hold host and kernel in one file: one struct for both.
#define TILING_BEGIN(name) using AscendC::tiling::name;
#define TILING_FIELD(type, name)
#define TILING_END
#else
#define TILING_BEGIN(name) BEGIN_TILING_DATA_DEF(name)
#define TILING_FIELD(type, name) TILING_DATA_FIELD_DEF(type, name);
#define TILING_END END_TILING_DATA_DEF;
#endif
#include "opkit/host/vector_tilings.inc"

}  // namespace optiling
