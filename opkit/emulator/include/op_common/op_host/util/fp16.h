/// Half precision values of host code. The names are those that public operator libraries use.
#pragma once

#include "opkit/api/half.h"

namespace Ops {
namespace Base {

using fp16_t = ::opkit::detail::Float16<::opkit::detail::half_bits, ::opkit::detail::half_value>;

}  // namespace Base
}  // namespace Ops
