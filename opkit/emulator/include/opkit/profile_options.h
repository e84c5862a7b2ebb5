/// How a program's launches are timed; see `opkit profile`.
#pragma once

#include <stdint.h>

#include "opkit/export.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct opkit_profile_options {
  uint32_t event_limit;  ///< timeline events kept per launch
  int32_t lift_limits;   ///< not 0: also times each launch without each limit in turn
  int32_t timing_only;   ///< not 0: what steers kernels runs, tensors are not computed
} opkit_profile_options;

/// Times every later launch of this process.
OPKIT_API void opkit_begin_profile(const opkit_profile_options* options);

/// Returns the launches timed since the last call, a JSON array; the text stays valid until the next call.
OPKIT_API const char* opkit_take_profile(void);

#ifdef __cplusplus
}
#endif
