/// How a program's launches are checked; see `opkit check`.
#pragma once

#include <stdint.h>

#include "opkit/export.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct opkit_check_options {
  const char* detectors;  ///< names joined by ",": as observe/checks.h has them
  int64_t only_block;     ///< findings of this block only; -1: of all
  int32_t has_auto_sync;  ///< whether the compiler orders scalar accesses of vector cores
  int32_t witness;        ///< not 0: run launches with races again, in the order that loses
  int32_t unused;         ///< not 0: also device memory that nothing ever touched
} opkit_check_options;

/// Checks every later launch and the device memory of this process. Returns null, or why it refused.
OPKIT_API const char* opkit_begin_checks(const opkit_check_options* options);

/// Ends the checks and returns what they found, a JSON array; the text stays valid until the next call.
OPKIT_API const char* opkit_end_checks(void);

#ifdef __cplusplus
}
#endif
