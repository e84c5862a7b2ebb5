/// Shape inference of element-wise operators. The names are those that public operator libraries call.
#pragma once

#include "exe_graph/runtime/infer_shape_context.h"
#include "op_common/log/log.h"
#include "op_common/op_host/util/shape_util.h"

namespace Ops {
namespace Base {

/// Every output has the shape of the first input.
inline ge::graphStatus InferShape4Elewise(gert::InferShapeContext* context) {
  const gert::Shape* input = context->GetInputShape(0);
  OP_CHECK_NULL_WITH_CONTEXT(context, input);
  for (size_t i = 0; i < context->GetComputeNodeOutputNum(); ++i) {
    gert::Shape* output = context->GetOutputShape(i);
    OP_CHECK_NULL_WITH_CONTEXT(context, output);
    *output = *input;
  }
  return ge::GRAPH_SUCCESS;
}

}  // namespace Base
}  // namespace Ops
