/// An operator's attributes at run time, by their order in the OpDef. Source: basic data structures API,
/// gert::RuntimeAttrs.
#pragma once

#include <cstddef>
#include <cstdint>

#include "exe_graph/runtime/continuous_vector.h"

namespace gert {

/// Every accessor returns null when there is no such attribute. The type asked for is the caller's responsibility:
/// int64_t, float, bool, char (strings), ContinuousVector of int64_t, float or bool, or ContinuousVectorVector.
class RuntimeAttrs {
 public:
  RuntimeAttrs(const void* const* values, size_t count) : values_(values), count_(count) {}

  template <typename T>
  const T* GetAttrPointer(size_t index) const {
    if (index < count_) return static_cast<const T*>(values_[index]);
    ++asked_past_last_;
    return nullptr;
  }

  const int64_t* GetInt(size_t index) const { return GetAttrPointer<int64_t>(index); }
  const float* GetFloat(size_t index) const { return GetAttrPointer<float>(index); }
  const bool* GetBool(size_t index) const { return GetAttrPointer<bool>(index); }
  const char* GetStr(size_t index) const { return GetAttrPointer<char>(index); }
  const TypedContinuousVector<int64_t>* GetListInt(size_t index) const {
    return GetAttrPointer<TypedContinuousVector<int64_t>>(index);
  }
  const TypedContinuousVector<float>* GetListFloat(size_t index) const {
    return GetAttrPointer<TypedContinuousVector<float>>(index);
  }
  const ContinuousVectorVector* GetListListInt(size_t index) const {
    return GetAttrPointer<ContinuousVectorVector>(index);
  }
  size_t GetAttrNum() const { return count_; }

  /// How often host code has asked for an attribute behind the OpDef's last one.
  size_t asked_past_last() const { return asked_past_last_; }

 private:
  const void* const* values_;
  size_t count_;
  mutable size_t asked_past_last_ = 0;
};

}  // namespace gert
