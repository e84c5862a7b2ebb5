#include "register/op_def_registry.h"

namespace ops {

/// total += x in place; first: the first `count` elements of the new total, whose number no host function infers.
class RunningSum : public OpDef {
 public:
  explicit RunningSum(const char* name) : OpDef(name) {
    this->Input("total").DataType({ge::DT_FLOAT}).Format({ge::FORMAT_ND});
    this->Input("x").DataType({ge::DT_FLOAT}).Format({ge::FORMAT_ND});
    this->Output("total").DataType({ge::DT_FLOAT}).Format({ge::FORMAT_ND});
    this->Output("first").DataType({ge::DT_FLOAT}).Format({ge::FORMAT_ND});
    this->AICore().AddConfig("ascend910b");
  }
};
OP_ADD(RunningSum);

}  // namespace ops
