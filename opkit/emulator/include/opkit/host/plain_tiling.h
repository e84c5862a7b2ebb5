/// A tiling struct that kernels read as it lies in memory, with the functions by which host code fills it.
#pragma once

#include <cstddef>
#include <cstring>

#include "opkit/host/abi.h"

namespace opkit::host {

/// Whether tiling data of `size_bytes` fits where it is to be written; logs an error when it does not.
inline bool fits_tiling(size_t size_bytes, const void* buffer, size_t capacity) {
  if (buffer != nullptr && capacity >= size_bytes) return true;
  // No log.h: its <cstdio> brings a printf that would win over the kernel's.
  char message[128];
  __builtin_snprintf(message, sizeof message, "SaveToBuffer: %zu bytes of tiling data do not fit into %zu", size_bytes,
                     capacity);
  opkit_log(LogLevel::Error, "TilingData", __FILE__, static_cast<uint32_t>(__LINE__), message);
  return false;
}

/// Writes nothing and logs an error when `capacity` is too small.
inline void save_plain_tiling(const void* values, size_t size_bytes, void* buffer, size_t capacity) {
  if (fits_tiling(size_bytes, buffer, capacity)) std::memcpy(buffer, values, size_bytes);
}

}  // namespace opkit::host

#define OPKIT_PLAIN_TILING()                                                 \
  ::std::size_t GetDataSize() const { return sizeof(*this); }                \
  void SaveToBuffer(void* buffer, ::std::size_t capacity) const {            \
    ::opkit::host::save_plain_tiling(this, sizeof(*this), buffer, capacity); \
  }

#define OPKIT_PLAIN_TILING_FIELD(data_type, field_name)                    \
  constexpr void set_##field_name(data_type value) { field_name = value; } \
  data_type get_##field_name() const { return field_name; }                \
  data_type field_name {}
