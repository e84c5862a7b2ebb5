/// What an InferShapeRange function reads and writes. Such functions compile and register; opkit never calls them,
/// because it always knows the exact shapes. Source: basic data structures API, gert::InferShapeRangeContext.
#pragma once

#include "exe_graph/runtime/extended_kernel_context.h"
#include "exe_graph/runtime/range.h"

namespace gert {

class InferShapeRangeContext : public ExtendedKernelContext {
 public:
  InferShapeRangeContext(const ComputeNodeInfo* node, Range<Shape>* inputs, Range<Shape>* outputs,
                         Range<Tensor>* input_tensors)
      : ExtendedKernelContext(node), inputs_(inputs), outputs_(outputs), input_tensors_(input_tensors) {}

  const Range<Shape>* GetInputShapeRange(size_t index) const {
    return index < node_->GetInputsNum() ? &inputs_[index] : nullptr;
  }
  const Range<Shape>* GetRequiredInputShapeRange(size_t ir_index) const { return range(ir_index, 0); }
  const Range<Shape>* GetOptionalInputShapeRange(size_t ir_index) const { return range(ir_index, 0); }
  const Range<Shape>* GetDynamicInputShapeRange(size_t ir_index, size_t relative_index) const {
    return range(ir_index, relative_index);
  }
  const Range<Tensor>* GetInputTensorRange(size_t index) const {
    return index < node_->GetInputsNum() ? &input_tensors_[index] : nullptr;
  }
  Range<Shape>* GetOutputShapeRange(size_t index) {
    return index < node_->GetOutputsNum() ? &outputs_[index] : nullptr;
  }

 private:
  const Range<Shape>* range(size_t ir_index, size_t relative_index) const {
    const AnchorInstanceInfo* info = node_->GetInputInstanceInfo(ir_index);
    if (info == nullptr || relative_index >= info->GetInstanceNum()) return nullptr;
    return GetInputShapeRange(info->GetInstanceStart() + relative_index);
  }

  Range<Shape>* inputs_;
  Range<Shape>* outputs_;
  Range<Tensor>* input_tensors_;
};

}  // namespace gert
