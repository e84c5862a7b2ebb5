#include "../op_kernel/rounded_tiling.h"
#include "register/op_def_registry.h"

namespace optiling {
static ge::graphStatus TilingFunc(gert::TilingContext* context) {
  auto* tiling = context->GetTilingData<RoundedTiling>();
  tiling->length = context->GetInputShape(0)->GetStorageShape().GetShapeSize();
  tiling->unit = *context->GetAttrs()->GetInt(0);
  tiling->buffer = *context->GetAttrs()->GetInt(1);
  tiling->front = *context->GetAttrs()->GetInt(2);
  context->SetBlockDim(1);
  return ge::GRAPH_SUCCESS;
}
}  // namespace optiling

namespace ops {
class Rounded : public OpDef {
 public:
  explicit Rounded(const char* name) : OpDef(name) {
    this->Input("x").ParamType(REQUIRED).DataType({ge::DT_FLOAT16}).Format({ge::FORMAT_ND});
    this->Output("y").Follow("x").ParamType(REQUIRED).DataType({ge::DT_FLOAT16}).Format({ge::FORMAT_ND});
    this->Attr("unit").AttrType(OPTIONAL).Int(128);
    this->Attr("buffer").AttrType(OPTIONAL).Int(8192);
    this->Attr("front").AttrType(OPTIONAL).Int(32);
    this->AICore().SetTiling(optiling::TilingFunc);
    this->AICore().AddConfig("ascend910b");
  }
};
OP_ADD(Rounded);
}  // namespace ops
