/// System variables. Source: Ascend C API, system variables.
#pragma once

#include "opkit/api/base.h"
#include "opkit/api/runtime_abi.h"

namespace AscendC {

inline int64_t GetBlockIdx() { return opkit::core_variables().block_index; }
inline int64_t GetBlockNum() { return opkit::core_variables().block_count; }
inline int64_t GetSubBlockIdx() { return opkit::core_variables().sub_block_index; }
inline int64_t GetSubBlockNum() { return opkit::core_variables().sub_block_count; }
inline int64_t GetSystemCycle() { return static_cast<int64_t>(opkit::system_cycle()); }

/// Resets masks and flags at the start of a kernel of the static-tensor dialect; every launch starts that way here.
inline void InitSocState() {}

inline void SetMaskNorm() { opkit::set_mask_mode(false); }
inline void SetMaskCount() { opkit::set_mask_mode(true); }

}  // namespace AscendC

#define ASCEND_IS_AIV (!::opkit::core_variables().is_cube)
#define ASCEND_IS_AIC (::opkit::core_variables().is_cube)
