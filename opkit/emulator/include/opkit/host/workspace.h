/// The part of a workspace that belongs to the API, on the host and in kernels.
#pragma once

#include <cstdint>

namespace opkit {

/// Comes first in every workspace whose tiling function adds GetLibApiWorkSpaceSize().
/// Source: public Ascend C samples for A2, WORKSPACE_SIZE.
constexpr uint32_t kLibApiWorkspaceBytes = 16 * 1024 * 1024;

}  // namespace opkit
