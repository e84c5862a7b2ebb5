/// Names of the vendor's tilings of reductions for chips whose kernels compute in vector registers: as
/// atvoss/elewise/elewise_tiling.h.
#pragma once

#include <cstdint>

namespace Ops::Base {

struct ReduceOpCompileInfo;
struct ReduceOpInputParam;
struct ReduceOpTilingData;

/// What tilings say of themselves in a key; host code that serves several chips holds one. The fields' names are those
/// that public host code reads.
struct ReduceTilingKey {
  uint32_t patternID = 0;
  uint32_t loopARCount = 0;
  uint32_t loopInnerARCount = 0;
};

}  // namespace Ops::Base
