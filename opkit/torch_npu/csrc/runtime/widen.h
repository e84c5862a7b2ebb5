/// Types that PyTorch's CPU lacks an operator for, and a wider one that it has it for.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

namespace opkit::npu {

/// Calls `op` on a stack of the CPU's tensors. Where its floating tensors are of one half type, and the CPU says that
/// it has no code for that type, computes in float32 and rounds results and written arguments once. Returns the half
/// type's name then, else null.
const char* call_on_cpu(const c10::OperatorHandle& op, c10::Stack* stack);

}  // namespace opkit::npu
