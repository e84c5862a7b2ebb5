#include "register/op_def_registry.h"

// Behind it: they need its names.
#include "../op_kernel/scaled_tiling.h"
#include "../op_kernel/scaled_tiling_key.h"

namespace optiling {

static ge::graphStatus Tiling(gert::TilingContext* context) {
  const auto count = static_cast<uint32_t>(context->GetInputShape(0)->GetOriginShape().GetShapeSize());
  const auto dtype = static_cast<uint32_t>(context->GetInputDesc(0)->GetDataType());
  if (dtype == ge::DT_FLOAT) {
    *context->GetTilingData<ScaledFloatTiling>() = {0, count};
  } else {
    context->GetTilingData<ScaledTiling>()->count = count;
  }
  const auto factor = static_cast<uint64_t>(*context->GetAttrs()->GetInt(0));
  const bool is_negated = *context->GetAttrs()->GetBool(1);
  context->SetBlockDim(1);
  ASCENDC_TPL_SEL_PARAM(context, dtype, factor, is_negated);
  return ge::GRAPH_SUCCESS;
}

}  // namespace optiling

namespace ops {

static ge::graphStatus InferShape(gert::InferShapeContext* context) {
  *context->GetOutputShape(0) = *context->GetInputShape(0);
  return ge::GRAPH_SUCCESS;
}

class Scaled : public OpDef {
 public:
  explicit Scaled(const char* name) : OpDef(name) {
    const std::vector<ge::Format> formats = {ge::FORMAT_ND, ge::FORMAT_ND};
    this->Input("x").ParamType(REQUIRED).DataType({ge::DT_FLOAT16, ge::DT_FLOAT}).Format(formats);
    this->Output("y").ParamType(REQUIRED).DataType({ge::DT_FLOAT16, ge::DT_FLOAT}).Format(formats);
    this->Attr("factor").Int();
    this->Attr("is_negated").Bool();
    this->SetInferShape(InferShape);
    this->AICore().SetTiling(optiling::Tiling);
    this->AICore().AddConfig("ascend910b");
  }
};
OP_ADD(Scaled);

}  // namespace ops
