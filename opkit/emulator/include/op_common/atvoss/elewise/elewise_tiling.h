/// Names of the vendor's tilings for chips whose kernels compute in vector registers. Host code that serves several
/// chips mentions them; sources that use them are for other chips than those known here, and are left out.
#pragma once

namespace Ops::Base {

class ElewiseBaseTiling;
struct EleBaseTilingData;
struct EleBaseTilingDataV2;

}  // namespace Ops::Base
