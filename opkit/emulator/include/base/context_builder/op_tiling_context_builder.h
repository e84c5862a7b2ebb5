/// Tiling contexts by hand: what tests of a tiling function call it with.
///
///     auto data = gert::TilingData::CreateCap(4096);
///     auto workspace = gert::ContinuousVector::Create<size_t>(8);
///     gert::OpTilingContextBuilder builder;
///     builder.OpType("AddCustom").OpName("add").IONum(2, 1).InputTensors({&x, &y}).OutputTensors({&z});
///     builder.CompileInfo(&info).PlatformInfo(&platform).TilingData(as_tiling_data).Workspace(as_vector);
///     auto holder = builder.Build();
///     gert::TilingContext* context = holder.GetContext();
///
/// Source of names and use: unit tests of public operator libraries (tests/ut/common/tiling_context_faker.h).
#pragma once

#include <stdexcept>
#include <string>
#include <vector>

#include "base/context_builder/context_holder.h"

namespace gert {

/// Methods may be called in any order before Build; each replaces what it said before, AppendAttr appends.
class OpTilingContextBuilder {
 public:
  OpTilingContextBuilder& OpType(const ge::AscendString& type) {
    parts_->type = type.GetString();
    return *this;
  }
  OpTilingContextBuilder& OpName(const ge::AscendString& name) {
    parts_->name = name.GetString();
    return *this;
  }

  /// One tensor for each input and output of the OpDef.
  OpTilingContextBuilder& IONum(size_t input_count, size_t output_count) {
    return IOInstanceNum(std::vector<uint32_t>(input_count, 1), std::vector<uint32_t>(output_count, 1));
  }
  /// How many tensors stand for each input and output of the OpDef: 0 for an absent one, several for a dynamic one.
  OpTilingContextBuilder& IOInstanceNum(const std::vector<uint32_t>& inputs, const std::vector<uint32_t>& outputs) {
    parts_->ir_inputs = opkit::host::instances(inputs);
    parts_->ir_outputs = opkit::host::instances(outputs);
    return *this;
  }

  /// The next attribute in the OpDef's order.
  template <typename Value>
  OpTilingContextBuilder& AppendAttr(const Value& value) {
    parts_->attrs.append(value);
    return *this;
  }

  /// Copied; their data is not. A tensor that holds data has values that the tiling function can read.
  OpTilingContextBuilder& InputTensors(const std::vector<Tensor*>& tensors) {
    parts_->inputs = opkit::host::copies(tensors);
    return *this;
  }
  OpTilingContextBuilder& OutputTensors(const std::vector<Tensor*>& tensors) {
    parts_->outputs = opkit::host::copies(tensors);
    return *this;
  }

  /// What GetCompileInfo gives; the caller keeps it alive, as it does with what the next three name.
  OpTilingContextBuilder& CompileInfo(const void* compile_info) {
    parts_->state.compile_info = compile_info;
    return *this;
  }
  /// An fe::PlatFormInfos.
  OpTilingContextBuilder& PlatformInfo(const void* platform) {
    parts_->state.platform = static_cast<fe::PlatFormInfos*>(const_cast<void*>(platform));
    return *this;
  }
  OpTilingContextBuilder& TilingData(const gert::TilingData* data) {
    parts_->state.tiling_data = const_cast<gert::TilingData*>(data);
    return *this;
  }
  /// Room for the sizes that GetWorkspaceSizes gives out.
  OpTilingContextBuilder& Workspace(const ContinuousVector* sizes) {
    parts_->state.workspace_sizes = const_cast<ContinuousVector*>(sizes);
    return *this;
  }
  OpTilingContextBuilder& Deterministic(int32_t deterministic) {
    parts_->state.deterministic = deterministic;
    return *this;
  }
  OpTilingContextBuilder& DeterministicLevel(int32_t level) {
    parts_->state.deterministic_level = level;
    return *this;
  }

  /// Hands over everything that was said; the builder is empty afterwards.
  ///
  /// Throws std::invalid_argument where there are more or fewer tensors than IONum or IOInstanceNum say.
  ContextHolder<TilingContext> Build() {
    parts_->check();
    auto parts = std::move(parts_);
    parts_ = std::make_unique<opkit::host::ContextParts>();
    return ContextHolder<TilingContext>(std::move(parts));
  }

 private:
  std::unique_ptr<opkit::host::ContextParts> parts_ = std::make_unique<opkit::host::ContextParts>();
};

}  // namespace gert
