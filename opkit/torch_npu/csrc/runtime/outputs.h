/// Tensors that a call gives for its results (`out=`): checked and sized before any kernel sees them.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <map>
#include <mutex>
#include <string>

namespace opkit::npu {

/// PyTorch's own check of an operator (meta_functions.inc); null where its kernels check by themselves.
using OutputCheck = const c10::KernelFunction*;
OutputCheck output_check(const std::string& op);

/// Refuses what PyTorch refuses, in its words, and gives the tensors their sizes. Whether no result has an element, and
/// all tensors are on the device: then there is nothing to compute.
bool prepare_outputs(OutputCheck check, const c10::OperatorHandle& op, const c10::Stack& stack);

/// Whether PyTorch has an operator for the types of a call's tensors and numbers, `out=` among them: the CPU is asked
/// once for each combination, with tensors of one element. One float type for all tensors is not asked for, but where a
/// result says yes or no.
class TypesTaken {
 public:
  explicit TypesTaken(bool is_truth) : is_truth_(is_truth) {}
  bool operator()(const c10::OperatorHandle& op, const c10::Stack& stack);

 private:
  const bool is_truth_;
  std::mutex lock_;
  std::map<std::string, bool> known_;
};

}  // namespace opkit::npu
