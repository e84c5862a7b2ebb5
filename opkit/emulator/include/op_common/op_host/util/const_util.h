/// Reading the values of inputs that shape inference or tiling depends on. The names are those that public operator
/// libraries call.
#pragma once

#include <cstdint>

#include "exe_graph/runtime/shape.h"
#include "exe_graph/runtime/tensor.h"
#include "graph/types.h"

namespace Ops {
namespace Base {

/// Appends nothing: the values of `tensor` become the dimensions of `shape`.
template <typename T>
void GetValueToShape(const gert::Tensor* tensor, gert::Shape& shape) {
  const T* values = tensor->GetData<T>();
  const size_t count = static_cast<size_t>(tensor->GetShapeSize());
  shape.SetDimNum(count);
  for (size_t i = 0; i < count; ++i) shape.SetDim(i, static_cast<int64_t>(values[i]));
}
template <typename T>
void GetValueToShape(const gert::Tensor* tensor, gert::Shape* shape) {
  GetValueToShape<T>(tensor, *shape);
}

/// The first value of an int32 or int64 input; false where its values are not there.
template <typename Context, typename Value>
bool GetConstInt(Context* context, int64_t index, Value& value) {
  const gert::Tensor* tensor = context->GetInputTensor(static_cast<size_t>(index));
  if (tensor == nullptr || tensor->GetAddr() == nullptr) return false;
  if (tensor->GetDataType() == ge::DT_INT32) {
    value = static_cast<Value>(*tensor->GetData<int32_t>());
  } else if (tensor->GetDataType() == ge::DT_INT64) {
    value = static_cast<Value>(*tensor->GetData<int64_t>());
  } else {
    return false;
  }
  return true;
}

/// The values of an int32 or int64 input as the dimensions of a shape; false where they are not there.
template <typename Context>
bool GetConstIntToShape(Context* context, int64_t index, gert::Shape& shape) {
  const gert::Tensor* tensor = context->GetInputTensor(static_cast<size_t>(index));
  if (tensor == nullptr || tensor->GetAddr() == nullptr) return false;
  if (tensor->GetDataType() == ge::DT_INT32) {
    GetValueToShape<int32_t>(tensor, shape);
  } else if (tensor->GetDataType() == ge::DT_INT64) {
    GetValueToShape<int64_t>(tensor, shape);
  } else {
    return false;
  }
  return true;
}

}  // namespace Base
}  // namespace Ops
