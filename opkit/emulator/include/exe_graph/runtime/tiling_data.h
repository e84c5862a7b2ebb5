/// The bytes that a tiling function hands to its kernel. Source: basic data structures API, gert::TilingData.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <type_traits>

#include "graph/ge_error_codes.h"

namespace gert {

class TilingData {
 public:
  TilingData(void* data, size_t capacity) : data_(data), capacity_(capacity) {}

  /// No data, with zeroed room for `capacity` bytes of it, in one piece that starts with the TilingData.
  static std::unique_ptr<uint8_t[]> CreateCap(size_t capacity) {
    auto bytes = std::make_unique<uint8_t[]>(sizeof(TilingData) + capacity);
    new (bytes.get()) TilingData(bytes.get() + sizeof(TilingData), capacity);
    return bytes;
  }

  size_t GetCapacity() const { return capacity_; }
  size_t GetDataSize() const { return data_size_; }
  /// A size above the capacity is kept: the operator call reports it.
  void SetDataSize(size_t size_bytes) { data_size_ = size_bytes; }
  const void* GetData() const { return data_; }
  void* GetData() { return data_; }

  /// Appends behind what is there; GRAPH_FAILED when it does not fit.
  template <typename T, std::enable_if_t<std::is_trivially_copyable<T>::value, int> = 0>
  ge::graphStatus Append(const T& value) {
    return Append(&value, 1);
  }
  template <typename T, std::enable_if_t<std::is_trivially_copyable<T>::value, int> = 0>
  ge::graphStatus Append(const T* values, size_t count) {
    const size_t size_bytes = sizeof(T) * count;
    if (data_size_ > capacity_ || size_bytes > capacity_ - data_size_) return ge::GRAPH_FAILED;
    std::memcpy(static_cast<uint8_t*>(data_) + data_size_, values, size_bytes);
    data_size_ += size_bytes;
    return ge::GRAPH_SUCCESS;
  }

 private:
  void* data_;
  size_t capacity_;
  size_t data_size_ = 0;
};

template <typename T>
TilingData& operator<<(TilingData& out, const T& value) {
  out.Append(value);
  return out;
}

}  // namespace gert
