/// Running an operator's tiling function.
#pragma once

#include <vector>

#include "bound_call.h"
#include "core/chip.h"
#include "library.h"

namespace opkit::host {

/// What a tiling function decided.
struct TilingResult {
  std::vector<uint8_t> data;
  uint32_t block_dim = 0;
  uint64_t tiling_key = 0;
  uint64_t workspace_bytes = 0;
  bool needs_atomic = false;
};

/// Throws CallError when the function fails or decides something impossible.
TilingResult run_tiling(opkit_library& library, const BoundCall& call, const Chip& chip);

}  // namespace opkit::host
