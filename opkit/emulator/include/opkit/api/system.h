/// System variables. Source: Ascend C API, system variables; workspace.
#pragma once

#include "opkit/api/base.h"
#include "opkit/api/runtime_abi.h"

namespace opkit {

/// The workspace that SetSysWorkspace has named on this core; null before.
OPKIT_API uint8_t* system_workspace();
OPKIT_API void set_system_workspace(uint8_t* workspace);

/// Variables of the language extension. Objects, not macros: kernels have locals and members of the same name.
struct BlockIndex {
  operator int64_t() const { return core_variables().block_index; }  // NOLINT: reads as a number
};
struct BlockCount {
  operator int64_t() const { return core_variables().block_count; }  // NOLINT: reads as a number
};

}  // namespace opkit

namespace AscendC {

/// The kinds of sub-cores, and that of the caller.
enum CoreKind : uint8_t { AIC, AIV };
struct CurrentCoreKind {
  operator CoreKind() const { return opkit::core_variables().is_cube ? AIC : AIV; }  // NOLINT: reads as the kind
};

}  // namespace AscendC

inline constexpr AscendC::CurrentCoreKind g_coreType{};
inline constexpr opkit::BlockIndex block_idx{};
inline constexpr opkit::BlockCount block_num{};

namespace AscendC {

inline int64_t GetBlockIdx() { return opkit::core_variables().block_index; }
inline int64_t GetBlockNum() { return opkit::core_variables().block_count; }
inline int64_t GetSubBlockIdx() { return opkit::core_variables().sub_block_index; }
inline int64_t GetSubBlockNum() { return opkit::core_variables().sub_block_count; }
/// Sub-cores of the caller's kind in each block.
inline int64_t GetTaskRatio() { return opkit::core_variables().sub_block_count; }
inline int64_t GetTaskRation() { return GetTaskRatio(); }
inline int64_t GetSystemCycle(opkit::Where where = opkit::Where::here()) {
  return static_cast<int64_t>(opkit::system_cycle(where));
}

inline void SetSysWorkspace(GM_ADDR workspace) { opkit::set_system_workspace(workspace); }
inline void SetSysWorkspaceForce(GM_ADDR workspace) { opkit::set_system_workspace(workspace); }
inline GM_ADDR GetSysWorkSpacePtr() { return opkit::system_workspace(); }

/// Resets masks and flags at the start of a kernel of the static-tensor dialect; every launch starts that way here.
inline void InitSocState() {}

inline void SetMaskNorm() { opkit::set_mask_mode(false); }
inline void SetMaskCount() { opkit::set_mask_mode(true); }

}  // namespace AscendC

// Kernels call it without a namespace, too.
using AscendC::GetSysWorkSpacePtr;

#define ASCEND_IS_AIV (!::opkit::core_variables().is_cube)
#define ASCEND_IS_AIC (::opkit::core_variables().is_cube)
#define ASCEND_IS_NOT_AIV (::opkit::core_variables().is_cube)
#define ASCEND_IS_NOT_AIC (!::opkit::core_variables().is_cube)
