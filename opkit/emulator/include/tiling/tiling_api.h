/// The host side of the high-level API: tiling functions include this one header. Kernels that share a header of tiling
/// data with host code have the structs by it, and nothing else.
#pragma once

#ifdef OPKIT_KERNEL_CONSTANTS
#include "kernel_tiling/kernel_tiling.h"
#else

#include <iostream>  // programs that include this header alone print with std::cout
#include <map>
#include <string>
#include <vector>

#include "lib/matmul/bmm_tiling.h"
#include "lib/matmul/matmul_tiling.h"
#include "opkit/api/half.h"  // host sources take the size of a half
#include "opkit/api/missing.h"
#include "opkit/block_sizes.h"
#include "securec.h"
#include "opkit/host/conversion_space.h"
#include "opkit/host/norm_tiling.h"
#include "opkit/host/reduce_space.h"
#include "opkit/host/refused.h"
#include "opkit/host/softmax_tiling.h"
#include "opkit/host/sort_space.h"
#include "opkit/host/temporary_space.h"
#include "opkit/host/transpose_space.h"

// Host code that includes this header writes them so.
using std::map;
using std::string;
using std::vector;
#endif
