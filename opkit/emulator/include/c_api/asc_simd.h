/// The C interface on memory: copies between global memory and UB, vector functions, synchronisation, system variables.
/// What opkit has of it stands in opkit/c_api; anything else is undeclared by its own name.
#pragma once

#include "kernel_operator.h"
#include "opkit/c_api/copy.h"
#include "opkit/c_api/sync.h"
#include "opkit/c_api/vector.h"
