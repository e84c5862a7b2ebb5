/// bfloat16 values of host code. The names are those that public operator libraries use.
#pragma once

#include "opkit/api/half.h"

namespace Ops {
namespace Base {

using bfloat16 = ::opkit::detail::Float16<::opkit::detail::bfloat16_bits, ::opkit::detail::bfloat16_value>;

}  // namespace Base
}  // namespace Ops
