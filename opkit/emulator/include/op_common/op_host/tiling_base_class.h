/// The base of tiling classes: the steps of a tiling function, in order. The names are those that public operator
/// libraries derive from and override.
#pragma once

#include <cstdint>

#include "exe_graph/runtime/tiling_context.h"
#include "op_common/log/log.h"
#include "op_common/op_host/tiling_base_util.h"
#include "tiling/platform/platform_ascendc.h"

namespace Ops {
namespace Base {

/// What GetPlatformInfo finds out.
struct AiCoreParams {
  uint64_t ubSize = 0;
  uint64_t blockDim = 0;
  uint64_t numBlocks = 0;
  uint64_t aicNum = 0;
  uint64_t l1Size = 0;
  uint64_t l0aSize = 0;
  uint64_t l0bSize = 0;
  uint64_t l0cSize = 0;
};

/// What a TilingParse function leaves for every later call.
struct CompileInfoCommon {
  uint32_t aivNum = 0;
  uint32_t aicNum = 0;
  uint64_t ubSize = 0;
  uint64_t l1Size = 0;
  uint64_t l0aSize = 0;
  uint64_t l0bSize = 0;
  uint64_t l0cSize = 0;
  uint64_t l2CacheSize = 0;
  int64_t coreNum = 0;
  int32_t socVersion = 0;
  uint32_t rsvd = 0;
};

class TilingBaseClass {
 public:
  explicit TilingBaseClass(gert::TilingContext* context) : context_(context) {}
  virtual ~TilingBaseClass() = default;

  /// GRAPH_PARAM_INVALID where this class does not serve the call, so that the next one is asked.
  ge::graphStatus DoTiling() {
    ge::graphStatus status = GetShapeAttrsInfo();
    if (status == ge::GRAPH_SUCCESS) status = GetPlatformInfo();
    if (status != ge::GRAPH_SUCCESS) return status;
    if (!IsCapable()) return ge::GRAPH_PARAM_INVALID;
    status = DoOpTiling();
    if (status == ge::GRAPH_SUCCESS) status = DoLibApiTiling();
    if (status == ge::GRAPH_SUCCESS) status = GetWorkspaceSize();
    if (status == ge::GRAPH_SUCCESS) status = PostTiling();
    if (status != ge::GRAPH_SUCCESS) return status;
    context_->SetTilingKey(GetTilingKey());
    DumpTilingInfo();
    return ge::GRAPH_SUCCESS;
  }

  virtual void Reset(gert::TilingContext* context) { context_ = context; }

 protected:
  virtual bool IsCapable() = 0;
  virtual ge::graphStatus GetPlatformInfo() = 0;
  virtual ge::graphStatus GetShapeAttrsInfo() = 0;
  virtual ge::graphStatus DoOpTiling() = 0;
  virtual ge::graphStatus DoLibApiTiling() = 0;
  virtual uint64_t GetTilingKey() const = 0;
  virtual ge::graphStatus GetWorkspaceSize() = 0;
  virtual ge::graphStatus PostTiling() = 0;
  virtual void DumpTilingInfo() {}

  gert::TilingContext* context_ = nullptr;
  AiCoreParams aicoreParams_;
  uint32_t blockDim_ = 0;
  uint32_t numBlocks_ = 0;
  uint64_t workspaceSize_ = 0;
  uint64_t tilingKey_ = 0;
};

}  // namespace Base
}  // namespace Ops
