/// The C interface of vector instructions, of which opkit has no function: kernels that include it for another chip's
/// branch find it, and what they call of it is undeclared by its own name.
#pragma once

#include "kernel_operator.h"
