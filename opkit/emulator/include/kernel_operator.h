/// The header that Ascend C kernels include: the public names of the kernel-side API.
#pragma once

#include "opkit/api/atomic.h"
#include "opkit/api/base.h"
#include "opkit/api/cache.h"
#include "opkit/api/data_copy.h"
#include "opkit/api/data_copy_convert.h"
#include "opkit/api/debug.h"
#include "opkit/api/half.h"
#include "opkit/api/pipe.h"
#include "opkit/api/sync.h"
#include "opkit/api/system.h"
#include "opkit/api/tensor.h"
#include "opkit/api/tiling.h"
#include "opkit/api/vector.h"
#include "opkit/kernel_entry.h"
