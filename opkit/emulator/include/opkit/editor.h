/// What a language server includes in front of a source with kernel launches (`opkit cc --compile-commands`): it reads
/// the source itself, as HIP, the one language of clang's in which `kernel<<<...>>>(...)` is an expression.
#pragma once

// Kernels call functions of the host and host code calls functions of kernels: both are one program here.
#pragma clang force_cuda_host_device begin

#define __global__ __attribute__((global))
#include "opkit/launch_entry.h"

/// What clang looks up for the part of a launch between `<<<` and `>>>`.
extern "C" int __hipPushCallConfiguration(int64_t blocks, void* l2_control = nullptr, void* stream = nullptr);
