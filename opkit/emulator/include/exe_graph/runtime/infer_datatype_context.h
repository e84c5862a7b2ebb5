/// What an InferDataType function reads and writes. Source: basic data structures API, gert::InferDataTypeContext.
#pragma once

#include "exe_graph/runtime/extended_kernel_context.h"

namespace gert {

/// A type that is not there is DT_UNDEFINED.
class InferDataTypeContext : public ExtendedKernelContext {
 public:
  using ExtendedKernelContext::ExtendedKernelContext;

  ge::DataType GetInputDataType(size_t index) const { return dtype(node_->input(index)); }
  ge::DataType GetRequiredInputDataType(size_t ir_index) const { return dtype(node_->ir_input(ir_index)); }
  ge::DataType GetOptionalInputDataType(size_t ir_index) const { return dtype(node_->ir_input(ir_index)); }
  ge::DataType GetDynamicInputDataType(size_t ir_index, size_t relative_index) const {
    return dtype(node_->ir_input(ir_index, relative_index));
  }
  ge::DataType GetOutputDataType(size_t index) const { return dtype(node_->output(index)); }

  ge::graphStatus SetOutputDataType(size_t index, ge::DataType type) {
    Tensor* tensor = node_->output(index);
    if (tensor == nullptr) return ge::GRAPH_FAILED;
    tensor->SetDataType(type);
    return ge::GRAPH_SUCCESS;
  }

 private:
  static ge::DataType dtype(const Tensor* tensor) {
    return tensor == nullptr ? ge::DT_UNDEFINED : tensor->GetDataType();
  }
};

}  // namespace gert
