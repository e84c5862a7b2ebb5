/// Names of the vendor's tilings of broadcasts for chips whose kernels compute in vector registers: as
/// atvoss/elewise/elewise_tiling.h.
#pragma once

namespace Ops::Base {

template <typename Operator>
class BroadcastBaseTiling;
struct BroadcastCompileInfo;
struct BroadcastTilingParams;

}  // namespace Ops::Base
