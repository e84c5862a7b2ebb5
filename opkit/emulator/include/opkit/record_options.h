/// How a program's launches are recorded; see `opkit debug`.
#pragma once

#include <stdint.h>

#include "opkit/export.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct opkit_record_options {
  const char* folder;    ///< where recordings go, a file each
  const char* kernel;    ///< launches of this kernel only; empty: of any
  uint32_t launch;       ///< the launch of this number only, from 1; 0: every one
  int32_t is_poisoned;   ///< not 0: local memories begin as NaN patterns, as opkit_run_options say
  uint64_t limit_bytes;  ///< of one recording
} opkit_record_options;

/// Records every later launch of this process that the options mean.
OPKIT_API void opkit_begin_recording(const opkit_record_options* options);

/// Ends that and writes <folder>/<process id>-<launch>.recording for each. Returns null, or what could not be written;
/// the text stays valid until the next call.
OPKIT_API const char* opkit_end_recording(void);

#ifdef __cplusplus
}
#endif
