/// The tiling structs of the high-level API that kernels take as arguments.
#pragma once

#include "opkit/api/constant_tiling.h"
#include "opkit/api/cube_tiling.h"
#include "opkit/api/vector_tiling.h"
