/// Names of the vendor's element-wise tilings by another of their paths.
#pragma once

#include "op_common/atvoss/elewise/elewise_tiling.h"
