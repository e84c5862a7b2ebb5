/// The public templates of the rows of elementwise.inc.
#pragma once

#include "opkit/high_level/activation.h"
#include "opkit/high_level/elementwise.h"
#include "opkit/high_level/error_function.h"
#include "opkit/high_level/hyperbolic.h"
#include "opkit/high_level/math.h"
#include "opkit/high_level/trigonometric.h"

namespace AscendC {

#define HIGH_LEVEL_UNARY OPKIT_ELEMENTWISE
#define HIGH_LEVEL_BINARY OPKIT_ELEMENTWISE_BINARY
#include "opkit/high_level/elementwise.inc"

}  // namespace AscendC
