/// The helpers of host code by another of their paths.
#pragma once

#include "op_common/op_host/util/math_util.h"
