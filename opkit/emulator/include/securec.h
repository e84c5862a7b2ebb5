/// memcpy_s and memset_s: copies and fills that know how large their destination is. Source: ISO C11, annex K, and the
/// bounds-checking functions of that name which host code finds through the API's headers.
#pragma once

#include <cerrno>
#include <cstddef>
#include <cstring>

using errno_t = int;

/// 0, or an error number; nothing is copied that does not fit.
inline errno_t memcpy_s(void* dest, size_t destMax, const void* src, size_t count) {
  if (dest == nullptr || src == nullptr) return EINVAL;
  if (count > destMax) return ERANGE;
  std::memcpy(dest, src, count);
  return 0;
}
inline errno_t memset_s(void* dest, size_t destMax, int c, size_t count) {
  if (dest == nullptr) return EINVAL;
  if (count > destMax) return ERANGE;
  std::memset(dest, c, count);
  return 0;
}
