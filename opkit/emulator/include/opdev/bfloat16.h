/// bfloat16 values of programs that call operators (`op::bfloat16`), as on the device.
#pragma once

#include "opkit/api/half.h"

namespace op {

using bfloat16 = ::opkit::detail::Float16<::opkit::detail::bfloat16_bits, ::opkit::detail::bfloat16_value>;

}  // namespace op
