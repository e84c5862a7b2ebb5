/// Integer arithmetic of kernels, by the name that public operator libraries include.
#pragma once

#include "kernel_operator.h"
#include "op_common/op_host/util/math_util.h"
