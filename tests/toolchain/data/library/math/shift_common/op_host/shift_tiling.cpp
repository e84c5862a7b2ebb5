// The tiling of several operators; DEPENDENCIES of each leads here.
#include "graph/utils/type_utils.h"
#include "op_host/shares.h"
#include "op_host/tiling_base_class.h"
#include "platform/platform_ascendc.h"
#include "register/op_impl_registry.h"
#include "math/shift_common/op_host/shift_tiling_data.h"

#ifndef SHIFT_SIGNED
#error "CMake switches SHIFT_SIGNED on"
#endif
#ifdef SHIFT_OTHER
#error "CMake does not switch SHIFT_OTHER on"
#endif

namespace optiling {

/// Defined by the sources of another chip.
ge::graphStatus shift_on_registers(gert::TilingContext* context);

struct CompileInfo {
  uint64_t ub_size;
  std::string version;
};

class ShiftTiling : public Ops::Base::TilingBaseClass {
 public:
  using TilingBaseClass::TilingBaseClass;

 protected:
  bool IsCapable() override { return true; }
  ge::graphStatus GetPlatformInfo() override {
    const auto* info = context_->GetCompileInfo<CompileInfo>();
    OP_CHECK_NULL_WITH_CONTEXT(context_, info);
    aicoreParams_.ubSize = info->ub_size;
    // 192 KB, less the 256 bytes that the framework keeps.
    OP_CHECK_IF(info->ub_size != 196352 || info->version != "Ascend910B2",
                OP_LOGE(context_, "UB has %lu bytes on %s", info->ub_size, info->version.c_str()),
                return ge::GRAPH_FAILED);
    return ge::GRAPH_SUCCESS;
  }
  ge::graphStatus GetShapeAttrsInfo() override {
    count_ = Ops::Base::EnsureNotScalar(context_->GetInputShape(0)->GetStorageShape()).GetShapeSize();
    return ge::GRAPH_SUCCESS;
  }
  ge::graphStatus DoOpTiling() override {
    auto* data = context_->GetTilingData<ShiftTilingData>();
    const int64_t cores = Ops::Base::GetAivCoreNum(context_);
    data->count = count_;
    data->per_core = shares::per_core(count_, cores);
    data->by = *context_->GetAttrs()->GetInt(0);
    if (data->by == -77) return shift_on_registers(context_);
    context_->SetBlockDim(static_cast<uint32_t>(Ops::Base::CeilDiv(data->count, data->per_core)));
    return ge::GRAPH_SUCCESS;
  }
  ge::graphStatus DoLibApiTiling() override { return ge::GRAPH_SUCCESS; }
  uint64_t GetTilingKey() const override { return 0; }
  ge::graphStatus GetWorkspaceSize() override { return ge::GRAPH_SUCCESS; }
  ge::graphStatus PostTiling() override { return ge::GRAPH_SUCCESS; }

 private:
  int64_t count_ = 0;
};

static ge::graphStatus Tiling(gert::TilingContext* context) { return ShiftTiling(context).DoTiling(); }

static ge::graphStatus Prepare(gert::TilingParseContext* context) {
  auto* info = context->GetCompiledInfo<CompileInfo>();
  auto platform = platform_ascendc::PlatformAscendC(context->GetPlatformInfo());
  platform.GetCoreMemSize(platform_ascendc::CoreMemType::UB, info->ub_size);
  context->GetPlatformInfo()->GetPlatformRes("version", "SoC_version", info->version);
  return ge::GRAPH_SUCCESS;
}

#define SHIFT_LIKE(name) IMPL_OP_OPTILING(name).Tiling(Tiling).TilingParse<CompileInfo>(Prepare)
SHIFT_LIKE(Shift);
SHIFT_LIKE(Rotate);

}  // namespace optiling
