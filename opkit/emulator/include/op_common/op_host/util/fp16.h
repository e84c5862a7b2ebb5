/// Half precision values of host code. The names are those that public operator libraries use.
#pragma once

#include "opkit/host/rounding_half.h"

namespace Ops {
namespace Base {

using fp16_t = ::opkit::host::RoundingHalf;

}  // namespace Base
}  // namespace Ops
