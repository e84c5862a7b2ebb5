/// What a context points at, kept together with it. Source of the names: as op_tiling_context_builder.h says.
#pragma once

#include <deque>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "exe_graph/runtime/tiling_context.h"
#include "graph/ascend_string.h"
#include "opkit/host/abi.h"

namespace opkit::host {

/// Attributes in the OpDef's order, as gert::RuntimeAttrs reads them.
class AttrValues {
 public:
  void append(bool value) { values_.push_back(&bools_.emplace_back(value)); }
  void append(int64_t value) { values_.push_back(&ints_.emplace_back(value)); }
  void append(float value) { values_.push_back(&floats_.emplace_back(value)); }
  void append(const ge::AscendString& value) { values_.push_back(strings_.emplace_back(value).GetString()); }
  void append(const std::vector<int64_t>& list) { values_.push_back(&vectors_.emplace_back(kept(int_lists_, list))); }
  void append(const std::vector<float>& list) { values_.push_back(&vectors_.emplace_back(kept(float_lists_, list))); }
  void append(const std::vector<bool>& list) {
    bool* items = bool_lists_.emplace_back(std::make_unique<bool[]>(list.size())).get();
    for (size_t i = 0; i < list.size(); ++i) items[i] = list[i];
    values_.push_back(&vectors_.emplace_back(items, list.size()));
  }
  void append(const std::vector<std::vector<int64_t>>& lists) {
    auto& inner = inner_lists_.emplace_back();
    for (const auto& list : lists) inner.push_back(kept(int_lists_, list));
    values_.push_back(&list_lists_.emplace_back(inner.data(), inner.size()));
  }
  void append(const std::vector<ge::AscendString>&) {
    throw std::invalid_argument(
        "[OpTilingContextBuilder] AppendAttr: attributes that are lists of strings are not here");
  }

  gert::RuntimeAttrs attrs() const { return {values_.data(), values_.size()}; }

 private:
  template <typename T>
  static gert::ContinuousVector kept(std::deque<std::vector<T>>& lists, const std::vector<T>& list) {
    auto& own = lists.emplace_back(list);
    return {own.data(), own.size()};
  }

  std::vector<const void*> values_;
  // Deques: what they hold stays where it is.
  std::deque<bool> bools_;
  std::deque<int64_t> ints_;
  std::deque<float> floats_;
  std::deque<ge::AscendString> strings_;
  std::deque<std::vector<int64_t>> int_lists_;
  std::deque<std::vector<float>> float_lists_;
  std::deque<std::unique_ptr<bool[]>> bool_lists_;
  std::deque<std::vector<gert::ContinuousVector>> inner_lists_;
  std::deque<gert::ContinuousVector> vectors_;
  std::deque<gert::ContinuousVectorVector> list_lists_;
};

/// Everything that a context of a node reads.
struct ContextParts {
  std::string type;
  std::string name;
  std::vector<gert::Tensor> inputs;
  std::vector<gert::Tensor> outputs;
  std::vector<gert::AnchorInstanceInfo> ir_inputs;
  std::vector<gert::AnchorInstanceInfo> ir_outputs;
  AttrValues attrs;
  gert::TilingContext::State state = {};

  /// Throws std::invalid_argument where the tensors are not as many as the instances.
  void check() const {
    check("input", inputs.size(), ir_inputs);
    check("output", outputs.size(), ir_outputs);
  }

 private:
  void check(const char* kind, size_t tensors, const std::vector<gert::AnchorInstanceInfo>& instances) const {
    const size_t wanted =
        instances.empty() ? 0 : instances.back().GetInstanceStart() + instances.back().GetInstanceNum();
    if (tensors == wanted) return;
    throw std::invalid_argument("[" + type + "] has " + std::to_string(tensors) + " " + kind + " tensors, but " +
                                std::to_string(wanted) + " by IONum or IOInstanceNum");
  }
};

inline std::vector<gert::AnchorInstanceInfo> instances(const std::vector<uint32_t>& counts) {
  std::vector<gert::AnchorInstanceInfo> out;
  uint32_t start = 0;
  for (uint32_t count : counts) {
    out.emplace_back(start, count);
    start += count;
  }
  return out;
}

inline std::vector<gert::Tensor> copies(const std::vector<gert::Tensor*>& tensors) {
  std::vector<gert::Tensor> out;
  for (const gert::Tensor* tensor : tensors) {
    if (tensor == nullptr) throw std::invalid_argument("[OpTilingContextBuilder] a tensor is null");
    out.push_back(*tensor);
  }
  return out;
}

}  // namespace opkit::host

namespace gert {

/// Owns a context with its node; both last as long as the holder, wherever it is moved to.
template <typename Context>
class ContextHolder {
 public:
  ContextHolder() = default;
  explicit ContextHolder(std::unique_ptr<opkit::host::ContextParts> parts)
      : held_(std::make_unique<Held>(std::move(parts))) {}

  /// Null where there is none.
  Context* GetContext() const { return held_ == nullptr ? nullptr : &held_->context; }

 private:
  struct Held {
    explicit Held(std::unique_ptr<opkit::host::ContextParts> given)
        : parts(std::move(given)), attrs(parts->attrs.attrs()), node(state()), context(&node, &parts->state) {}

    ComputeNodeInfo::State state() const {
      ComputeNodeInfo::State out = {};
      out.name = parts->name.c_str();
      out.type = parts->type.c_str();
      out.inputs = parts->inputs.data();
      out.input_count = parts->inputs.size();
      out.outputs = parts->outputs.data();
      out.output_count = parts->outputs.size();
      out.ir_inputs = parts->ir_inputs.data();
      out.ir_input_count = parts->ir_inputs.size();
      out.ir_outputs = parts->ir_outputs.data();
      out.ir_output_count = parts->ir_outputs.size();
      out.attrs = &attrs;
      return out;
    }

    std::unique_ptr<opkit::host::ContextParts> parts;
    RuntimeAttrs attrs;
    ComputeNodeInfo node;
    Context context;
  };

  std::unique_ptr<Held> held_;
};

}  // namespace gert
