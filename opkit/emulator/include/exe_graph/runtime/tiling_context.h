/// What a tiling function reads and writes. Source: basic data structures API, gert::TilingContext.
#pragma once

#include "exe_graph/runtime/extended_kernel_context.h"
#include "exe_graph/runtime/tiling_data.h"
#include "platform/platform_infos_def.h"

namespace gert {

/// The strides of a view, in elements.
class Stride {
 public:
  size_t GetDimNum() const { return strides_.GetDimNum(); }
  void SetDimNum(size_t count) { strides_.SetDimNum(count); }
  int64_t GetStride(size_t axis) const { return strides_.GetDim(axis); }
  void SetStride(size_t axis, int64_t stride) { strides_.SetDim(axis, stride); }
  int64_t operator[](size_t axis) const { return strides_[axis]; }
  int64_t& operator[](size_t axis) { return strides_[axis]; }

 private:
  Shape strides_;
};

class TilingContext : public ExtendedKernelContext {
 public:
  /// What the tiling function decides, and what it may ask about. The library owns it.
  struct State {
    TilingData* tiling_data;
    ContinuousVector* workspace_sizes;  ///< of size_t
    uint64_t tiling_key;
    uint32_t block_dim;
    uint32_t schedule_mode;
    uint32_t local_memory_bytes;
    int32_t deterministic;
    int32_t deterministic_level;
    bool needs_atomic;
    const void* compile_info;
    fe::PlatFormInfos* platform;
  };

  TilingContext(const ComputeNodeInfo* node, State* state) : ExtendedKernelContext(node), state_(state) {}

  const StorageShape* GetInputShape(size_t index) const { return shape(node_->input(index)); }
  const StorageShape* GetRequiredInputShape(size_t ir_index) const { return shape(node_->ir_input(ir_index)); }
  const StorageShape* GetOptionalInputShape(size_t ir_index) const { return shape(node_->ir_input(ir_index)); }
  const StorageShape* GetDynamicInputShape(size_t ir_index, size_t relative_index) const {
    return shape(node_->ir_input(ir_index, relative_index));
  }
  const StorageShape* GetOutputShape(size_t index) const { return shape(node_->output(index)); }

  /// Whether an input is a view with gaps: none is, as calls get dense tensors. Names and use as in public operators.
  bool InputIsView(size_t) const { return false; }
  bool DynamicInputIsView(size_t, size_t) const { return false; }
  /// The strides of such a view: null.
  const Stride* GetInputStride(size_t) const { return nullptr; }
  const Stride* GetDynamicInputStride(size_t, size_t) const { return nullptr; }

  TilingData* GetRawTilingData() { return state_->tiling_data; }

  /// The tiling data read as a T, whose size it becomes; null when a T does not fit.
  template <typename T>
  T* GetTilingData() {
    if (sizeof(T) > state_->tiling_data->GetCapacity()) return nullptr;
    state_->tiling_data->SetDataSize(sizeof(T));
    return static_cast<T*>(state_->tiling_data->GetData());
  }

  ge::graphStatus SetBlockDim(uint32_t block_dim) {
    state_->block_dim = block_dim;
    return ge::GRAPH_SUCCESS;
  }
  uint32_t GetBlockDim() const { return state_->block_dim; }
  ge::graphStatus SetSimdNumBlocks(uint32_t block_count) { return SetBlockDim(block_count); }
  uint32_t GetSimdNumBlocks() const { return state_->block_dim; }

  ge::graphStatus SetTilingKey(uint64_t tiling_key) {
    state_->tiling_key = tiling_key;
    return ge::GRAPH_SUCCESS;
  }
  uint64_t GetTilingKey() const { return state_->tiling_key; }

  /// Room for `workspace_count` sizes in bytes; null when that is more than there is room for.
  size_t* GetWorkspaceSizes(size_t workspace_count) {
    ContinuousVector* sizes = state_->workspace_sizes;
    if (sizes == nullptr || sizes->SetSize(workspace_count) != ge::GRAPH_SUCCESS) return nullptr;
    return static_cast<size_t*>(sizes->MutableData());
  }
  size_t GetWorkspaceNum() const { return state_->workspace_sizes == nullptr ? 0 : state_->workspace_sizes->GetSize(); }

  fe::PlatFormInfos* GetPlatformInfo() const { return state_->platform; }
  int32_t GetDeterministic() const { return state_->deterministic; }
  int32_t GetDeterministicLevel() const { return state_->deterministic_level; }

  template <typename T>
  const T* GetCompileInfo() const {
    return static_cast<const T*>(state_->compile_info);
  }
  const void* GetCompileInfo() const { return state_->compile_info; }

  /// Asks for the outputs that have an InitValue to be filled before the kernel runs.
  ge::graphStatus SetNeedAtomic(bool needs_atomic) {
    state_->needs_atomic = needs_atomic;
    return ge::GRAPH_SUCCESS;
  }
  ge::graphStatus SetScheduleMode(uint32_t schedule_mode) {
    state_->schedule_mode = schedule_mode;
    return ge::GRAPH_SUCCESS;
  }
  ge::graphStatus SetLocalMemorySize(uint32_t size_bytes) {
    state_->local_memory_bytes = size_bytes;
    return ge::GRAPH_SUCCESS;
  }

 private:
  static const StorageShape* shape(const Tensor* tensor) { return tensor == nullptr ? nullptr : &tensor->GetShape(); }

  State* state_;
};

}  // namespace gert
