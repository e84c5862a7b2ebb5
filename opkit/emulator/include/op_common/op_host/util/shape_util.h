/// What shape inference asks about shapes: unknown dimensions, and text for messages. The names are those that public
/// operator libraries call.
#pragma once

#include <cstdint>
#include <sstream>
#include <string>
#include <vector>

#include "exe_graph/runtime/continuous_vector.h"
#include "exe_graph/runtime/shape.h"
#include "exe_graph/runtime/storage_shape.h"
#include "exe_graph/runtime/tensor.h"
#include "graph/types.h"
#include "graph/utils/type_utils.h"

namespace Ops {
namespace Base {

constexpr int64_t UNKNOWN_DIM = -1;
constexpr int64_t UNKNOWN_RANK = -2;

/// A shape whose number of dimensions is not known has the one dimension -2.
inline bool IsUnknownRank(const gert::Shape& shape) {
  return shape.GetDimNum() == 1 && shape.GetDim(0) == UNKNOWN_RANK;
}
inline bool IsUnknownRank(const gert::Shape* shape) { return shape != nullptr && IsUnknownRank(*shape); }
inline void SetUnknownRank(gert::Shape& shape) {
  shape.SetDimNum(1);
  shape.SetDim(0, UNKNOWN_RANK);
}
inline void SetUnknownRank(gert::Shape* shape) { SetUnknownRank(*shape); }

/// Whether a dimension is not known.
inline bool IsUnknownShape(const gert::Shape& shape) {
  for (size_t i = 0; i < shape.GetDimNum(); ++i) {
    if (shape.GetDim(i) == UNKNOWN_DIM) return true;
  }
  return false;
}
inline bool IsUnknownShape(const gert::Shape* shape) { return shape != nullptr && IsUnknownShape(*shape); }
/// `rank` dimensions, none of them known.
inline void SetUnknownShape(int64_t rank, gert::Shape& shape) {
  shape.SetDimNum(static_cast<size_t>(rank));
  for (int64_t i = 0; i < rank; ++i) shape.SetDim(static_cast<size_t>(i), UNKNOWN_DIM);
}
inline void SetUnknownShape(int64_t rank, gert::Shape* shape) { SetUnknownShape(rank, *shape); }

/// A scalar has one element: here it becomes a shape of one dimension.
inline const gert::Shape& EnsureNotScalar(const gert::Shape& shape) {
  static const gert::Shape one_element = {1};
  return shape.IsScalar() ? one_element : shape;
}

namespace detail {
template <typename Values>
std::string list_text(const Values& values, size_t count) {
  std::ostringstream text;
  text << '[';
  for (size_t i = 0; i < count; ++i) text << (i == 0 ? "" : ", ") << values[i];
  text << ']';
  return text.str();
}
}  // namespace detail

inline std::string ToString(const gert::Shape& shape) { return detail::list_text(shape, shape.GetDimNum()); }
inline std::string ToString(const gert::Shape* shape) { return shape == nullptr ? "nullptr" : ToString(*shape); }
inline std::string ToString(const gert::StorageShape& shape) { return ToString(shape.GetStorageShape()); }
inline std::string ToString(const gert::StorageShape* shape) { return shape == nullptr ? "nullptr" : ToString(*shape); }
inline std::string ToString(const gert::Tensor* tensor) {
  return tensor == nullptr ? "nullptr" : ToString(tensor->GetStorageShape());
}
inline std::string ToString(ge::DataType type) { return ge::TypeUtils::DataTypeToSerialString(type); }
inline std::string ToString(ge::Format format) { return ge::TypeUtils::FormatToSerialString(format); }
inline std::string ToString(const std::string& text) { return text; }
inline std::string ToString(const char* text) { return text == nullptr ? "nullptr" : text; }
template <typename T>
std::string ToString(const std::vector<T>& values) {
  return detail::list_text(values, values.size());
}
template <typename T>
std::string ToString(const T* values, size_t count) {
  return values == nullptr ? "nullptr" : detail::list_text(values, count);
}
template <typename T>
std::string ToString(const gert::TypedContinuousVector<T>* values) {
  return values == nullptr ? "nullptr" : detail::list_text(values->GetData(), values->GetSize());
}

}  // namespace Base
}  // namespace Ops
