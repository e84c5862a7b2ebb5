/// The header that Ascend C kernels include: the public names of the kernel-side API.
#pragma once

#include "opkit/api/atomic.h"
#include "opkit/api/base.h"
#include "opkit/api/cache.h"
#include "opkit/api/constant_tiling.h"
#include "opkit/api/data_copy.h"
#include "opkit/api/data_copy_convert.h"
#include "opkit/api/data_copy_enhanced.h"
#include "opkit/api/debug.h"
#include "opkit/api/fixpipe.h"
#include "opkit/api/fixpipe_bursts.h"
#include "opkit/api/half.h"
#include "opkit/api/layout.h"
#include "opkit/api/list_tensor.h"
#include "opkit/api/matrix_fill.h"
#include "opkit/api/matrix_image.h"
#include "opkit/api/matrix_load.h"
#include "opkit/api/mmad.h"
#include "opkit/api/pipe.h"
#include "opkit/api/saturation.h"
#include "opkit/api/std.h"
#include "opkit/api/sync.h"
#include "opkit/api/system.h"
#include "opkit/api/tensor.h"
#include "opkit/api/tiling.h"
#include "opkit/api/util.h"
#include "opkit/api/vector.h"
#include "opkit/kernel_entry.h"

// Beside the basic API. A text that calls none of this may say so, as those of opkit's own compiler do: it compiles in
// two thirds of the time.
#ifndef OPKIT_BASIC_API_ONLY
#include "opkit/api/addressable.h"
#include "opkit/api/builtin.h"
#include "opkit/api/builtin_convert.h"
#include "opkit/api/builtin_select.h"
#include "opkit/api/missing.h"
#include "opkit/api/ub_array.h"
#include "opkit/api/undocumented.h"
#include "opkit/high_level/all.h"
#endif
