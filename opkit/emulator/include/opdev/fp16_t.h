/// Half precision values of programs that call operators (`op::fp16_t`), as on the device.
#pragma once

#include "opkit/api/half.h"

namespace op {

using fp16_t = ::opkit::detail::Float16<::opkit::detail::half_bits, ::opkit::detail::half_value>;

}  // namespace op
