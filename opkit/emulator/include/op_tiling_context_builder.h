/// Tiling contexts by the path that unit tests of operator libraries use.
#pragma once

#include "base/context_builder/op_tiling_context_builder.h"
