/// Tensors that a call gives for its results (`out=`): checked and sized before any kernel sees them.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <string>

namespace opkit::npu {

/// PyTorch's own check of an operator (meta_functions.inc); null where its kernels check by themselves.
using OutputCheck = const c10::KernelFunction*;
OutputCheck output_check(const std::string& op);

/// Refuses what PyTorch refuses, in its words, and gives the tensors their sizes. Whether no result has an element, and
/// all tensors are on the device: then there is nothing to compute.
bool prepare_outputs(OutputCheck check, const c10::OperatorHandle& op, const c10::Stack& stack);

}  // namespace opkit::npu
