#include "weighted_sum_tiling.h"
#include "register/op_def_registry.h"

namespace optiling {
static ge::graphStatus TilingFunc(gert::TilingContext* context) {
  WeightedSumTilingData tiling;
  tiling.scale.set_factor(*context->GetAttrs()->GetFloat(0));
  tiling.set_length(context->GetDynamicInputShape(0, 0)->GetStorageShape().GetShapeSize());
  const auto* lists = context->GetAttrs()->GetListListInt(1);
  tiling.set_offset(lists->GetSize() == 0 ? 0 : *static_cast<const int64_t*>(lists->Get(0)->GetData()));
  tiling.SaveToBuffer(context->GetRawTilingData()->GetData(), context->GetRawTilingData()->GetCapacity());
  context->GetRawTilingData()->SetDataSize(tiling.GetDataSize());
  context->SetBlockDim(1);
  context->GetWorkspaceSizes(1)[0] = 32;
  return ge::GRAPH_SUCCESS;
}
}  // namespace optiling

static ge::graphStatus InferShape(gert::InferShapeContext* context) {
  *context->GetOutputShape(0) = *context->GetDynamicInputShape(0, 0);
  return ge::GRAPH_SUCCESS;
}
static ge::graphStatus InferDataType(gert::InferDataTypeContext* context) {
  context->SetOutputDataType(0, context->GetDynamicInputDataType(0, 0));
  return ge::GRAPH_SUCCESS;
}

namespace ops {
class WeightedSum : public OpDef {
 public:
  explicit WeightedSum(const char* name) : OpDef(name) {
    this->Input("x")
        .ParamType(DYNAMIC)
        .DataType({ge::DT_FLOAT, ge::DT_INT2})
        .Format({ge::FORMAT_ND, ge::FORMAT_ND})
        .AutoContiguous();
    this->Output("y").ParamType(REQUIRED).DataType({ge::DT_FLOAT, ge::DT_INT2}).Format({ge::FORMAT_ND, ge::FORMAT_ND});
    this->Attr("factor").AttrType(OPTIONAL).Float(1.0f);
    this->Attr("offsets").AttrType(OPTIONAL).ListListInt({{3, 4}, {5}});
    this->SetInferShape(InferShape).SetInferDataType(InferDataType);
    this->AICore().SetTiling(optiling::TilingFunc);
    this->AICore().AddConfig("ascend910b");
  }
};
OP_ADD(WeightedSum);
}  // namespace ops
