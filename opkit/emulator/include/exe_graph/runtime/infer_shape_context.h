/// What an InferShape function reads and writes. Source: basic data structures API, gert::InferShapeContext.
#pragma once

#include "exe_graph/runtime/extended_kernel_context.h"

namespace gert {

class InferShapeContext : public ExtendedKernelContext {
 public:
  using ExtendedKernelContext::ExtendedKernelContext;

  const Shape* GetInputShape(size_t index) const { return shape(node_->input(index)); }
  const Shape* GetRequiredInputShape(size_t ir_index) const { return shape(node_->ir_input(ir_index)); }
  const Shape* GetOptionalInputShape(size_t ir_index) const { return shape(node_->ir_input(ir_index)); }
  const Shape* GetDynamicInputShape(size_t ir_index, size_t relative_index) const {
    return shape(node_->ir_input(ir_index, relative_index));
  }
  Shape* GetOutputShape(size_t index) { return shape(node_->output(index)); }

 private:
  static Shape* shape(Tensor* tensor) { return tensor == nullptr ? nullptr : &tensor->MutableOriginShape(); }
};

}  // namespace gert
