/// A list of plain values. Source: basic data structures API, gert::ContinuousVector, gert::TypedContinuousVector.
#pragma once

#include <cstddef>

namespace gert {

class ContinuousVector {
 public:
  ContinuousVector() = default;
  ContinuousVector(void* data, size_t size) : size_(size), capacity_(size), data_(data) {}

  size_t GetSize() const { return size_; }
  size_t GetCapacity() const { return capacity_; }
  const void* GetData() const { return data_; }
  void* MutableData() { return data_; }

 protected:
  size_t size_ = 0;
  size_t capacity_ = 0;
  void* data_ = nullptr;
};

/// The same with a type; adds no state, so a pointer to the one may be read as the other.
template <typename T>
class TypedContinuousVector : public ContinuousVector {
 public:
  const T* GetData() const { return static_cast<const T*>(data_); }
  T* MutableData() { return static_cast<T*>(data_); }
};

}  // namespace gert
