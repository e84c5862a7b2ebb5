/// Half precision values of programs that call operators (`op::fp16_t`), as on the device.
#pragma once

#include "opkit/host/rounding_half.h"

namespace op {

using fp16_t = ::opkit::host::RoundingHalf;

}  // namespace op
