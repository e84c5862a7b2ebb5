/// Launching a kernel on addresses that the caller has: what torch's device does. Plain C, stable; nothing throws.
///
/// A kernel may touch the ranges that its launch names and no others, so an overrun is a fault even where the memory
/// behind belongs to another tensor.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "opkit/export.h"
#include "opkit/op_call.h"

#ifdef __cplusplus
extern "C" {
#endif

/// Memory that a kernel may touch; `name` is for messages and may be null. `is_written`: holds data before the launch.
typedef struct opkit_gm_range {
  const void* data;
  uint64_t bytes;
  const char* name;
  int32_t is_written;
} opkit_gm_range;

typedef struct opkit_direct_launch {
  const char* kernel;                      ///< its name, in faults and timings
  void (*invoke)(void* const* arguments);  ///< of the kernel's KernelEntry
  void* const* arguments;                  ///< arguments[i] points at the i-th argument's storage
  uint32_t mode;                           ///< of the kernel's KernelEntry
  uint32_t block_dim;
  uint64_t tiling_key;
  const opkit_gm_range* ranges;
  size_t range_count;
  int32_t ends_before_interrupt;  ///< the first SIGINT or SIGTERM lets it end, so that its results are whole
} opkit_direct_launch;

/// Runs a launch to its end; OPKIT_FAULT leaves the device usable. opkit_last_error() says what was wrong.
OPKIT_API opkit_status opkit_launch_direct(const opkit_direct_launch* launch);

/// Cores of the chip that is emulated: of the vector (1) or cube (0) kind.
OPKIT_API uint32_t opkit_core_count(int32_t is_vector);
/// What one vector core would do if it did a whole launch.
typedef struct opkit_core_work {
  double vector_cycles;
  double read_bytes;     ///< from global memory
  double written_bytes;  ///< to global memory
} opkit_core_work;

/// How many vector cores make a launch the shortest, one at least: each adds its part to the launch's own time and
/// takes its share of the work, of which copies are no faster than HBM. opkit/compiler/codegen/core_count.py has the
/// same law.
OPKIT_API uint32_t opkit_fair_cores(const opkit_core_work* work);
/// The name of the chip that is emulated; valid for the life of the process.
OPKIT_API const char* opkit_chip_name(void);
/// The modelled time of the launches of this process so far, in microseconds: 0 while they are not timed.
OPKIT_API double opkit_modelled_us(void);
/// Whether launches are timed by the chip's model.
OPKIT_API void opkit_time_launches(int32_t is_timed);
/// 1 where they are, 0 where not.
OPKIT_API int32_t opkit_are_launches_timed(void);

#ifdef __cplusplus
}
#endif
