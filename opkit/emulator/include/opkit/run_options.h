/// How a program is told what device to run on; see `opkit run`.
#pragma once

#include <stdint.h>

#include "opkit/export.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct opkit_run_options {
  const char* chip;  ///< a chip's name or alias; null: the one that the program was compiled for
  uint32_t threads;  ///< host threads; 0: as many as the host has cores
  int32_t poison;    ///< not 0: memories hold NaN patterns before each use
  uint64_t seed;     ///< not 0: blocks start in an order, memories with a byte drawn from it
  /// Not 0: a launch of which no core has ended for so long is ended.
  uint64_t timeout_ms;
  int32_t chip_bounds;       ///< not 0: tensors end where the chip's memories do, with their page or their local memory
  int32_t finds_raw_writes;  ///< not 0: memory that changes and that no instruction wrote is a fault
} opkit_run_options;

/// Applies the options to every later launch. Returns null, or why it refused; the text stays valid.
OPKIT_API const char* opkit_configure_run(const opkit_run_options* options);

/// 1 for the first of this process that asks, otherwise 0. Every library that `opkit cc` links brings the code that
/// applies the options, also one that is loaded and unloaded again while the program runs; one of them is to do it.
OPKIT_API int32_t opkit_is_first_start(void);

#ifdef __cplusplus
}
#endif
