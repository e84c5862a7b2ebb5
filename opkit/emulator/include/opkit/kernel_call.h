/// The kernel call: how Python, the torch device and C++ programs launch one kernel of a compiled image on memory that
/// they own. Plain C, stable; statuses and messages as in opkit/op_call.h.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "opkit/op_call.h"

#ifdef __cplusplus
extern "C" {
#endif

/// One kernel of an image, found once and launched often. Never closed.
typedef struct opkit_kernel opkit_kernel;

/// One argument. Global memory: `data` is its address and `size_bytes` how much of it the kernel may touch; nothing is
/// copied. A value, such as a scalar or a struct: `is_value`, and `data` points at it. Data null: a null address.
typedef struct opkit_kernel_argument {
  void* data;
  uint64_t size_bytes;
  int32_t is_value;
} opkit_kernel_argument;

/// Opens the kernel `name` of a shared object that opkit.toolchain.compile_kernel or `opkit build` made; its only
/// kernel where `name` is null. The same one opened twice is the same kernel.
OPKIT_API opkit_status opkit_kernel_open(const char* file, const char* name, opkit_kernel** kernel);

/// Runs the kernel on the configured device and returns when its last block has ended. May be called from any thread.
OPKIT_API opkit_status opkit_kernel_launch(const opkit_kernel* kernel, const opkit_kernel_argument* arguments,
                                           size_t argument_count, uint32_t block_dim, uint64_t tiling_key);

/// What an image says of its kernels: a JSON text that is valid until this thread's next call.
OPKIT_API opkit_status opkit_kernel_describe(const char* file, const char** json);

#ifdef __cplusplus
}
#endif
