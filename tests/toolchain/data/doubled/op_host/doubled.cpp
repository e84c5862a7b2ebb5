#include "../op_kernel/doubled_tiling.h"
#include "register/op_def_registry.h"

namespace optiling {
static ge::graphStatus TilingFunc(gert::TilingContext* context) {
  auto* tiling = context->GetTilingData<DoubledTiling>();
  tiling->length = context->GetInputShape(0)->GetStorageShape().GetShapeSize();
  context->SetBlockDim(1);
  return ge::GRAPH_SUCCESS;
}
}  // namespace optiling

namespace ge {
static graphStatus InferShape(gert::InferShapeContext* context) {
  gert::Shape* y = context->GetOutputShape(0);
  *y = *context->GetInputShape(0);
  y->SetDim(0, 2 * y->GetDim(0));
  return GRAPH_SUCCESS;
}
static graphStatus InferDataType(gert::InferDataTypeContext* context) {
  context->SetOutputDataType(0, context->GetInputDataType(0));
  return GRAPH_SUCCESS;
}
}  // namespace ge

namespace ops {
class Doubled : public OpDef {
 public:
  explicit Doubled(const char* name) : OpDef(name) {
    const std::vector<ge::DataType> types = {ge::DT_COMPLEX64, ge::DT_COMPLEX32, ge::DT_COMPLEX128};
    const std::vector<ge::Format> formats(3, ge::FORMAT_ND);
    this->Input("x").ParamType(REQUIRED).DataType(types).Format(formats);
    this->Output("y").ParamType(REQUIRED).DataType(types).Format(formats);
    this->SetInferShape(ge::InferShape).SetInferDataType(ge::InferDataType);
    this->AICore().SetTiling(optiling::TilingFunc);
    this->AICore().AddConfig("ascend910b");
  }
};
OP_ADD(Doubled);
}  // namespace ops
