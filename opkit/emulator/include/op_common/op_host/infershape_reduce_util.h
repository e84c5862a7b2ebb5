/// Shape inference of reductions. The names are those that public operator libraries call.
#pragma once

#include <vector>

#include "exe_graph/runtime/infer_shape_context.h"
#include "op_common/log/log.h"
#include "op_common/op_host/util/const_util.h"
#include "op_common/op_host/util/shape_util.h"

namespace Ops {
namespace Base {

/// The shape without the axes given, or with 1 in their place. No axes reduce nothing; an axis may be negative.
template <typename T>
ge::graphStatus ReduceDims(const gert::Shape* input, const T* axes, int32_t axis_count, bool keeps_dims,
                           gert::Shape* output) {
  const int64_t rank = static_cast<int64_t>(input->GetDimNum());
  std::vector<bool> is_reduced(static_cast<size_t>(rank), false);
  for (int32_t i = 0; i < axis_count; ++i) {
    int64_t axis = static_cast<int64_t>(axes[i]);
    if (rank == 0 && (axis == 0 || axis == -1)) continue;
    if (axis < -rank || axis >= rank) {
      OP_LOGE("ReduceDims", "the axis %ld is not below the rank %ld", static_cast<long>(axis), static_cast<long>(rank));
      return ge::GRAPH_FAILED;
    }
    is_reduced[static_cast<size_t>(axis < 0 ? axis + rank : axis)] = true;
  }
  gert::Shape result;
  for (size_t i = 0; i < is_reduced.size(); ++i) {
    if (!is_reduced[i]) {
      result.AppendDim(input->GetDim(i));
    } else if (keeps_dims) {
      result.AppendDim(1);
    }
  }
  *output = result;
  return ge::GRAPH_SUCCESS;
}

template <typename T>
ge::graphStatus ReduceDimsWithKeepDims(const gert::Shape* input, const T* axes, int32_t axis_count,
                                       gert::Shape* output) {
  return ReduceDims<T>(input, axes, axis_count, true, output);
}
template <typename T>
ge::graphStatus ReduceDimsWithoutKeepDims(const gert::Shape* input, const T* axes, int32_t axis_count,
                                          gert::Shape* output) {
  return ReduceDims<T>(input, axes, axis_count, false, output);
}

/// Input 1 holds the axes, attribute 0 says whether they stay as 1.
inline ge::graphStatus InferShape4Reduce(gert::InferShapeContext* context) {
  const gert::Shape* input = context->GetInputShape(0);
  OP_CHECK_NULL_WITH_CONTEXT(context, input);
  gert::Shape* output = context->GetOutputShape(0);
  OP_CHECK_NULL_WITH_CONTEXT(context, output);
  const bool* keeps_dims = context->GetAttrs()->GetBool(0);
  OP_CHECK_NULL_WITH_CONTEXT(context, keeps_dims);
  gert::Shape axes;
  if (!GetConstIntToShape(context, 1, axes)) {
    OP_LOGE(context->GetNodeName(), "the axes are not int32 or int64 values that shape inference can read");
    return ge::GRAPH_FAILED;
  }
  std::vector<int64_t> values;
  for (size_t i = 0; i < axes.GetDimNum(); ++i) values.push_back(axes.GetDim(i));
  return ReduceDims<int64_t>(input, values.data(), static_cast<int32_t>(values.size()), *keeps_dims, output);
}

}  // namespace Base
}  // namespace Ops
