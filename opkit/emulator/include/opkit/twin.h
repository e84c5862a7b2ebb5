/// What tikicpulib.h stands on: device memory in the host's reach, and launches that are over when the call returns.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "opkit/export.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct opkit_twin_launch {
  uint32_t abi_version;
  uint32_t table_fingerprint;
  uint32_t npu_arch;
  const char* kernel;
  void (*invoke)(void* const* arguments);
  void* const* arguments;
  uint32_t mode;  ///< opkit::KernelMode
  int64_t block_dim;
  uint64_t tiling_key;
} opkit_twin_launch;

/// Zeros; null when the host has no memory left. A kernel may touch it rounded up to 32 bytes, and nothing else.
OPKIT_API void* opkit_twin_allocate(size_t size_bytes);
/// Names on stderr what was freed before or is no such memory.
OPKIT_API void opkit_twin_free(void* pointer);
/// Runs a kernel to its end. Returns null, or what was wrong: a text that is valid until this thread's next call.
OPKIT_API const char* opkit_run_twin(const opkit_twin_launch* launch);

#ifdef __cplusplus
}
#endif
