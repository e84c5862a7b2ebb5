/// Lists of plain values, and lists of those. Source: basic data structures API, gert::ContinuousVector,
/// gert::TypedContinuousVector, gert::ContinuousVectorVector.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>

#include "graph/ge_error_codes.h"

namespace gert {

class ContinuousVector {
 public:
  ContinuousVector() = default;
  ContinuousVector(void* data, size_t size) : size_(size), capacity_(size), data_(data) {}

  /// An empty vector with zeroed room for `capacity` values of T, in one piece that starts with the vector.
  template <typename T>
  static std::unique_ptr<uint8_t[]> Create(size_t capacity) {
    static_assert(alignof(T) <= alignof(ContinuousVector), "its values lie right behind the vector");
    auto bytes = std::make_unique<uint8_t[]>(sizeof(ContinuousVector) + capacity * sizeof(T));
    auto* vector = new (bytes.get()) ContinuousVector(bytes.get() + sizeof(ContinuousVector), capacity);
    vector->size_ = 0;
    return bytes;
  }

  size_t GetSize() const { return size_; }
  size_t GetCapacity() const { return capacity_; }
  /// GRAPH_FAILED, and no change, when that is more than the capacity.
  ge::graphStatus SetSize(size_t size) {
    if (size > capacity_) return ge::GRAPH_FAILED;
    size_ = size;
    return ge::GRAPH_SUCCESS;
  }
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

/// A list of lists.
class ContinuousVectorVector {
 public:
  ContinuousVectorVector(const ContinuousVector* lists, size_t size) : size_(size), lists_(lists) {}

  size_t GetSize() const { return size_; }
  /// Null where there is no such list.
  const ContinuousVector* Get(size_t index) const { return index < size_ ? &lists_[index] : nullptr; }

 private:
  size_t size_;
  const ContinuousVector* lists_;
};

}  // namespace gert
