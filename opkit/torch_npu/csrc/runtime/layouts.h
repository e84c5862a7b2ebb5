/// How the elements of a result lie: as PyTorch's own functions leave them, where kernels give packed tensors.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <string>

namespace opkit::npu {

struct LayoutRow;

/// The row of an operator whose results lie as one of its operands does; else null.
const LayoutRow* layout_row(const std::string& op);

/// What an operator's results follow: taken before a call, which replaces the operands.
class Layout {
 public:
  Layout(const LayoutRow* row, const c10::OperatorHandle& op, const c10::Stack& stack);
  /// Moves the results on the stack to tensors that lie so.
  void give(const c10::OperatorHandle& op, c10::Stack& stack) const;

 private:
  at::Tensor like_;  ///< results of its sizes lie as it does
  c10::MemoryFormat format_ = c10::MemoryFormat::Contiguous;
};

}  // namespace opkit::npu
