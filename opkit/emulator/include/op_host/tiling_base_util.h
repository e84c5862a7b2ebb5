/// The helpers of tiling functions by another of their paths.
#pragma once

#include "op_common/op_host/tiling_base_util.h"
