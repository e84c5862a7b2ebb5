/// The tiling structs of vector functions of the high-level library, as kernels see them.
#pragma once

#include <cstdint>

#include "opkit/host/plain_tiling.h"

namespace AscendC::tiling {

#define TILING_BEGIN(name) \
  struct name {            \
    OPKIT_PLAIN_TILING()
#define TILING_FIELD(type, name) OPKIT_PLAIN_TILING_FIELD(type, name);
#define TILING_END \
  }                \
  ;
#include "opkit/host/vector_tilings.inc"

}  // namespace AscendC::tiling

using AscendC::tiling::BatchNormTiling;
using AscendC::tiling::ConfusionTransposeTiling;
using AscendC::tiling::DeepNormTiling;
using AscendC::tiling::GroupNormTiling;
using AscendC::tiling::LayerNormGradBetaTiling;
using AscendC::tiling::LayerNormGradTiling;
using AscendC::tiling::LayerNormSeparateTiling;
using AscendC::tiling::LayerNormTiling;
using AscendC::tiling::LogSoftMaxTiling;
using AscendC::tiling::PadTiling;
using AscendC::tiling::RmsNormTiling;
using AscendC::tiling::SoftMaxTiling;
using AscendC::tiling::TopkTiling;
using AscendC::tiling::UnPadTiling;
