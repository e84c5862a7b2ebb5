#include "../op_kernel/biased_tiling.h"
#include "register/op_def_registry.h"

namespace optiling {
static ge::graphStatus TilingFunc(gert::TilingContext* context) {
  auto* tiling = context->GetTilingData<BiasedTiling>();
  tiling->length = context->GetInputShape(0)->GetStorageShape().GetShapeSize();
  tiling->terms = context->GetInputShape(2)->GetStorageShape().GetShapeSize();
  context->SetBlockDim(1);
  return ge::GRAPH_SUCCESS;
}
}  // namespace optiling

namespace ops {
class Biased : public OpDef {
 public:
  explicit Biased(const char* name) : OpDef(name) {
    const std::vector<ge::DataType> types = {ge::DT_INT32, ge::DT_FLOAT, ge::DT_INT64};
    const std::vector<ge::Format> formats(3, ge::FORMAT_ND);
    this->Input("x").ParamType(REQUIRED).DataType(types).Format(formats);
    this->Input("bias").Scalar().ParamType(REQUIRED).DataType(types).Format(formats);
    this->Input("terms").ScalarList().ParamType(REQUIRED).DataType(types).Format(formats);
    this->Output("y").ParamType(REQUIRED).DataType(types).Format(formats);
    this->AICore().SetTiling(optiling::TilingFunc);
    this->AICore().AddConfig("ascend910b");
  }
};
OP_ADD(Biased);
}  // namespace ops
