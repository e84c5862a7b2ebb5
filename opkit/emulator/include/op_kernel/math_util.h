/// The helpers of kernels by another of their paths.
#pragma once

#include "op_common/op_kernel/math_util.h"
