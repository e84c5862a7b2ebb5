/// What all contexts have in common: the node, its tensors and attributes. Source: basic data structures API,
/// gert::ExtendedKernelContext, gert::ComputeNodeInfo.
///
/// Two kinds of index: a plain `index` counts the tensors that are really there (an absent optional input does not
/// count), an `ir_index` counts the inputs of the OpDef.
#pragma once

#include <cstddef>
#include <cstdint>

#include "exe_graph/runtime/runtime_attrs.h"
#include "exe_graph/runtime/tensor.h"

namespace gert {

/// Which real tensors stand for one input of the OpDef: none for an absent optional one, several for a dynamic one.
class AnchorInstanceInfo {
 public:
  AnchorInstanceInfo() = default;
  AnchorInstanceInfo(uint32_t start, uint32_t count) : start_(start), count_(count) {}
  size_t GetInstanceStart() const { return start_; }
  size_t GetInstanceNum() const { return count_; }

 private:
  uint32_t start_ = 0;
  uint32_t count_ = 0;
};

/// One node: an operator with its tensors. The library fills it; host code reads it.
class ComputeNodeInfo {
 public:
  struct State {
    const char* name;
    const char* type;
    Tensor* inputs;
    size_t input_count;
    Tensor* outputs;
    size_t output_count;
    const AnchorInstanceInfo* ir_inputs;
    size_t ir_input_count;
    const AnchorInstanceInfo* ir_outputs;
    size_t ir_output_count;
    const RuntimeAttrs* attrs;
  };

  explicit ComputeNodeInfo(const State& state) : state_(state) {}

  const char* GetNodeName() const { return state_.name; }
  const char* GetNodeType() const { return state_.type; }
  size_t GetInputsNum() const { return state_.input_count; }
  size_t GetOutputsNum() const { return state_.output_count; }
  size_t GetIrInputsNum() const { return state_.ir_input_count; }
  size_t GetIrOutputsNum() const { return state_.ir_output_count; }
  const RuntimeAttrs* GetAttrs() const { return state_.attrs; }

  const AnchorInstanceInfo* GetInputInstanceInfo(size_t ir_index) const {
    asks_for(ir_index);
    return ir_index < state_.ir_input_count ? &state_.ir_inputs[ir_index] : nullptr;
  }
  const AnchorInstanceInfo* GetOutputInstanceInfo(size_t ir_index) const {
    return ir_index < state_.ir_output_count ? &state_.ir_outputs[ir_index] : nullptr;
  }
  const CompileTimeTensorDesc* GetInputTdInfo(size_t index) const {
    const Tensor* tensor = input(index);
    return tensor == nullptr ? nullptr : &tensor->GetDesc();
  }
  const CompileTimeTensorDesc* GetOutputTdInfo(size_t index) const {
    const Tensor* tensor = output(index);
    return tensor == nullptr ? nullptr : &tensor->GetDesc();
  }

  /// The tensor at a plain index; null when there is none.
  Tensor* input(size_t index) const {
    if (index < state_.input_count) return &state_.inputs[index];
    asks_for(index);
    return nullptr;
  }
  Tensor* output(size_t index) const { return index < state_.output_count ? &state_.outputs[index] : nullptr; }

  /// The `relative`-th tensor of an OpDef input; null when there is none.
  Tensor* ir_input(size_t ir_index, size_t relative = 0) const {
    const AnchorInstanceInfo* info = GetInputInstanceInfo(ir_index);
    if (info == nullptr || relative >= info->GetInstanceNum()) return nullptr;
    return input(info->GetInstanceStart() + relative);
  }

  /// How often host code has asked for an input behind the OpDef's last one.
  size_t asked_past_last() const { return asked_past_last_; }

 private:
  void asks_for(size_t ir_index) const {
    if (ir_index >= state_.ir_input_count) ++asked_past_last_;
  }

  State state_;
  mutable size_t asked_past_last_ = 0;
};

class ExtendedKernelContext {
 public:
  explicit ExtendedKernelContext(const ComputeNodeInfo* node) : node_(node) {}

  const char* GetNodeName() const { return node_->GetNodeName(); }
  const char* GetNodeType() const { return node_->GetNodeType(); }
  size_t GetComputeNodeInputNum() const { return node_->GetInputsNum(); }
  size_t GetComputeNodeOutputNum() const { return node_->GetOutputsNum(); }
  const ComputeNodeInfo* GetComputeNodeInfo() const { return node_; }
  const RuntimeAttrs* GetAttrs() const { return node_->GetAttrs(); }
  const AnchorInstanceInfo* GetIrInputInstanceInfo(size_t ir_index) const {
    return node_->GetInputInstanceInfo(ir_index);
  }
  const AnchorInstanceInfo* GetIrOutputInstanceInfo(size_t ir_index) const {
    return node_->GetOutputInstanceInfo(ir_index);
  }

  const CompileTimeTensorDesc* GetInputDesc(size_t index) const { return node_->GetInputTdInfo(index); }
  const CompileTimeTensorDesc* GetRequiredInputDesc(size_t ir_index) const { return desc(node_->ir_input(ir_index)); }
  const CompileTimeTensorDesc* GetOptionalInputDesc(size_t ir_index) const { return desc(node_->ir_input(ir_index)); }
  const CompileTimeTensorDesc* GetDynamicInputDesc(size_t ir_index, size_t relative_index) const {
    return desc(node_->ir_input(ir_index, relative_index));
  }
  const CompileTimeTensorDesc* GetOutputDesc(size_t index) const { return node_->GetOutputTdInfo(index); }

  const Tensor* GetInputTensor(size_t index) const { return node_->input(index); }
  const Tensor* GetRequiredInputTensor(size_t ir_index) const { return node_->ir_input(ir_index); }
  const Tensor* GetOptionalInputTensor(size_t ir_index) const { return node_->ir_input(ir_index); }
  const Tensor* GetDynamicInputTensor(size_t ir_index, size_t relative_index) const {
    return node_->ir_input(ir_index, relative_index);
  }

 protected:
  static const CompileTimeTensorDesc* desc(const Tensor* tensor) {
    return tensor == nullptr ? nullptr : &tensor->GetDesc();
  }

  const ComputeNodeInfo* node_;
};

}  // namespace gert
