#include "register/op_impl_registry.h"

static ge::graphStatus InferDataType(gert::InferDataTypeContext* context) {
  return context->SetOutputDataType(0, context->GetInputDataType(0));
}
IMPL_OP(Shift).InferDataType(InferDataType);
