/// Constants that a kernel keeps in global memory: `const __gm__ int32_t TABLE[] = {...}` lies in its own library.
#pragma once

#include "core/launch.h"

namespace opkit {

/// Whether the bytes lie in the read-only data of the library, or the program, that the launch's kernel is in.
bool is_kernel_constant(const Launch& launch, uint64_t address, uint64_t bytes);

}  // namespace opkit
