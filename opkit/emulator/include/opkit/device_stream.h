/// Streams of the acl runtime for a device whose work has ended when its calls return, such as torch's: what is
/// launched on one has run behind the launch. Plain C, stable; nothing throws.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "opkit/export.h"

#ifdef __cplusplus
extern "C" {
#endif

/// The aclrtStream for a stream of another runtime, the same one for each number; makes it, and the calling thread's
/// device, where there is none. Null where that fails: aclGetRecentErrMsg says why.
OPKIT_API void* opkit_device_stream(int64_t number);
/// Writes what has failed on these streams, the first one, and forgets it, so that the device works on; false if none.
OPKIT_API bool opkit_take_device_fault(char* text, size_t size);

#ifdef __cplusplus
}
#endif
