/// Names of the vendor's tilings of broadcasts by another of their paths.
#pragma once

#include "op_common/atvoss/broadcast/broadcast_tiling.h"
