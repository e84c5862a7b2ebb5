/// Names of the vendor's tilings of reductions by another of their paths.
#pragma once

#include "op_common/atvoss/reduce/reduce_tiling.h"
