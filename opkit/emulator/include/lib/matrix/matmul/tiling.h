/// The same as tiling/tiling_api.h, under a name that sources also include.
#pragma once

#include "tiling/tiling_api.h"
