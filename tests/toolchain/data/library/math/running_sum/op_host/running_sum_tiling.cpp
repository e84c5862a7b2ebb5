#include "log/log.h"
#include "register/op_impl_registry.h"
#include "running_sum_tiling_registers.h"

struct CompileInfo {};

static ge::graphStatus Tiling(gert::TilingContext* context) {
  auto* sizes = context->GetTilingData<uint32_t[2]>();
  (*sizes)[0] = static_cast<uint32_t>(context->GetInputShape(0)->GetShape().GetShapeSize());
  (*sizes)[1] = static_cast<uint32_t>(context->GetOutputShape(1)->GetStorageShape().GetShapeSize());
  const int64_t* hidden = context->GetAttrs()->GetInt(0);
  OP_CHECK_IF(hidden == nullptr || *hidden != 7, OP_LOGE(context, "the private attribute is not there"),
              return ge::GRAPH_FAILED);
  if (context->GetInputShape(0)->GetShape().GetShapeSize() == 0) return RegisterTiling().Run(context);
  context->SetBlockDim(1);
  return ge::GRAPH_SUCCESS;
}

static ge::graphStatus Prepare(gert::TilingParseContext*) { return ge::GRAPH_SUCCESS; }

IMPL_OP_OPTILING(RunningSum).Tiling(Tiling).TilingParse<CompileInfo>(Prepare).PrivateAttr("hidden", int64_t{7});
