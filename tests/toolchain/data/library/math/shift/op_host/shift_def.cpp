#include "register/op_def_registry.h"

namespace ops {

static ge::graphStatus CheckSupport(const ge::Operator& op, ge::AscendString& result) {
  result = ge::AscendString(op.GetInputDesc("x").GetShape().GetDimNum() == 0 ? "False" : "True");
  return ge::GRAPH_SUCCESS;
}

class Shift : public OpDef {
 public:
  explicit Shift(const char* name) : OpDef(name) {
    const std::vector<ge::DataType> types = {ge::DT_FLOAT, ge::DT_INT32, ge::DT_INT8, ge::DT_FLOAT16};
    const std::vector<ge::Format> formats(types.size(), ge::FORMAT_ND);
    this->Input("x").ParamType(REQUIRED).DataType(types).Format(formats);
    this->Input("size")
        .ParamType(OPTIONAL)
        .DataTypeList({ge::DT_INT64})
        .FormatList({ge::FORMAT_ND})
        .ValueDepend(OPTIONAL);
    this->Output("y").ParamType(REQUIRED).DataType(types).Format(formats);
    this->Attr("by").AttrType(OPTIONAL).Int(1);
    OpAICoreConfig config;
    config.DynamicShapeSupportFlag(true).ExtendCfgInfo("softsync.flag", "true");
    this->AICore().SetCheckSupport(CheckSupport);
    this->AICore().AddConfig("ascend910b", config);
  }
};
OP_ADD(Shift);

}  // namespace ops
