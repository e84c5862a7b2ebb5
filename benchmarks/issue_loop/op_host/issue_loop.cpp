// Host side of IssueLoop: one core, and the number of instructions from the attribute.
#include "../op_kernel/issue_loop_tiling.h"

#include "register/op_def_registry.h"

namespace optiling {

static ge::graphStatus TilingFunc(gert::TilingContext* context)
{
    auto* tiling = context->GetTilingData<IssueLoopTilingData>();
    const gert::RuntimeAttrs* attrs = context->GetAttrs();
    if (tiling == nullptr || attrs == nullptr) {
        return ge::GRAPH_FAILED;
    }
    tiling->instructions = *attrs->GetAttrPointer<int64_t>(0);
    tiling->isEmpty = *attrs->GetAttrPointer<int64_t>(1);
    context->SetBlockDim(1);
    context->SetTilingKey(0);
    context->GetWorkspaceSizes(1)[0] = 0;
    return ge::GRAPH_SUCCESS;
}

}  // namespace optiling

namespace ge {

static graphStatus InferShape(gert::InferShapeContext* context)
{
    *context->GetOutputShape(0) = *context->GetInputShape(0);
    return GRAPH_SUCCESS;
}

static graphStatus InferDataType(gert::InferDataTypeContext* context)
{
    context->SetOutputDataType(0, context->GetInputDataType(0));
    return GRAPH_SUCCESS;
}

}  // namespace ge

namespace ops {

class IssueLoop : public OpDef {
public:
    explicit IssueLoop(const char* name) : OpDef(name)
    {
        this->Input("x").ParamType(REQUIRED).DataType({ge::DT_FLOAT}).Format({ge::FORMAT_ND});
        this->Output("y").ParamType(REQUIRED).DataType({ge::DT_FLOAT}).Format({ge::FORMAT_ND});
        this->Attr("instructions").AttrType(REQUIRED).Int();
        this->Attr("is_empty").AttrType(REQUIRED).Int();
        this->SetInferShape(ge::InferShape).SetInferDataType(ge::InferDataType);
        this->AICore().SetTiling(optiling::TilingFunc);
        this->AICore().AddConfig("ascend910b");
    }
};

OP_ADD(IssueLoop);

}  // namespace ops
