/// Shape inference of operators that broadcast. The names are those that public operator libraries call.
#pragma once

#include <algorithm>
#include <vector>

#include "exe_graph/runtime/infer_shape_context.h"
#include "op_common/log/log.h"
#include "op_common/op_host/util/shape_util.h"

namespace Ops {
namespace Base {

/// What two shapes broadcast to, aligned at their last dimensions; false where they do not. `result` may be one of
/// them.
inline bool BroadcastShape(const gert::Shape* first, const gert::Shape* second, gert::Shape* result) {
  const gert::Shape shapes[] = {*first, *second};
  const size_t rank = std::max(first->GetDimNum(), second->GetDimNum());
  gert::Shape joined;
  for (size_t i = 0; i < rank; ++i) {
    int64_t dim = 1;
    for (const gert::Shape& shape : shapes) {
      const size_t missing = rank - shape.GetDimNum();
      const int64_t other = i < missing ? 1 : shape.GetDim(i - missing);
      if (dim != other && dim != 1 && other != 1) return false;
      if (dim == 1) dim = other;
    }
    joined.AppendDim(dim);
  }
  *result = joined;
  return true;
}
inline bool BroadcastShape(const gert::Shape& first, const gert::Shape& second, gert::Shape& result) {
  return BroadcastShape(&first, &second, &result);
}
inline bool BroadcastShape(const std::vector<const gert::Shape*>& shapes, gert::Shape* result) {
  if (shapes.empty()) return false;
  gert::Shape joined = *shapes.front();
  for (const gert::Shape* shape : shapes) {
    if (!BroadcastShape(&joined, shape, &joined)) return false;
  }
  *result = joined;
  return true;
}
inline bool BroadcastShape(const std::vector<gert::Shape>& shapes, gert::Shape& result) {
  std::vector<const gert::Shape*> pointers;
  for (const gert::Shape& shape : shapes) pointers.push_back(&shape);
  return BroadcastShape(pointers, &result);
}

/// The first output has the shape that the first `input_count` inputs broadcast to.
inline ge::graphStatus InferShape4Broadcast(gert::InferShapeContext* context, size_t input_count) {
  std::vector<const gert::Shape*> shapes;
  for (size_t i = 0; i < input_count; ++i) {
    const gert::Shape* shape = context->GetInputShape(i);
    OP_CHECK_NULL_WITH_CONTEXT(context, shape);
    shapes.push_back(shape);
  }
  gert::Shape* output = context->GetOutputShape(0);
  OP_CHECK_NULL_WITH_CONTEXT(context, output);
  if (BroadcastShape(shapes, output)) return ge::GRAPH_SUCCESS;
  std::string told;
  for (const gert::Shape* shape : shapes) told += (told.empty() ? "" : ", ") + ToString(*shape);
  OP_LOGE(context->GetNodeName(), "the shapes %s do not broadcast", told.c_str());
  return ge::GRAPH_FAILED;
}
inline ge::graphStatus InferShape4Broadcast(gert::InferShapeContext* context) {
  return InferShape4Broadcast(context, 2);
}

}  // namespace Base
}  // namespace Ops
