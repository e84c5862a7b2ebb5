#include "../op_kernel/nibbles_tiling.h"
#include "register/op_def_registry.h"

namespace optiling {
static ge::graphStatus TilingFunc(gert::TilingContext* context) {
  auto* tiling = context->GetTilingData<NibblesTiling>();
  tiling->length = context->GetInputShape(0)->GetStorageShape().GetShapeSize();
  context->SetBlockDim(1);
  return ge::GRAPH_SUCCESS;
}
}  // namespace optiling

namespace ge {
static graphStatus InferShape(gert::InferShapeContext* context) {
  *context->GetOutputShape(0) = *context->GetInputShape(0);
  return GRAPH_SUCCESS;
}
static graphStatus InferDataType(gert::InferDataTypeContext* context) {
  context->SetOutputDataType(0, context->GetInputDataType(0) == DT_INT4 ? DT_FLOAT16 : DT_INT4);
  return GRAPH_SUCCESS;
}
}  // namespace ge

namespace ops {
class Nibbles : public OpDef {
 public:
  explicit Nibbles(const char* name) : OpDef(name) {
    const std::vector<ge::Format> formats(2, ge::FORMAT_ND);
    this->Input("x").ParamType(REQUIRED).DataType({ge::DT_FLOAT16, ge::DT_INT4}).Format(formats);
    this->Output("y").ParamType(REQUIRED).DataType({ge::DT_INT4, ge::DT_FLOAT16}).Format(formats);
    this->SetInferShape(ge::InferShape).SetInferDataType(ge::InferDataType);
    this->AICore().SetTiling(optiling::TilingFunc);
    this->AICore().AddConfig("ascend910b");
  }
};
OP_ADD(Nibbles);
}  // namespace ops
