/// Copies, fills and text that know how large their destination is. Source: ISO C11, annex K, and the bounds-checking
/// functions of that name which host code finds through the API's headers.
#pragma once

#include <cerrno>
#include <cstdarg>
#include <cstddef>
#include <cstdio>
#include <cstring>

using errno_t = int;

/// What these functions return when they did what was asked.
#define EOK 0

/// 0, or an error number; nothing is copied that does not fit.
inline errno_t memcpy_s(void* dest, size_t destMax, const void* src, size_t count) {
  if (dest == nullptr || src == nullptr) return EINVAL;
  if (count > destMax) return ERANGE;
  std::memcpy(dest, src, count);
  return 0;
}
inline errno_t memmove_s(void* dest, size_t destMax, const void* src, size_t count) {
  if (dest == nullptr || src == nullptr) return EINVAL;
  if (count > destMax) return ERANGE;
  std::memmove(dest, src, count);
  return 0;
}
inline errno_t memset_s(void* dest, size_t destMax, int c, size_t count) {
  if (dest == nullptr) return EINVAL;
  if (count > destMax) return ERANGE;
  std::memset(dest, c, count);
  return 0;
}

/// Text is copied with its final 0; where it does not fit, `dest` becomes empty.
inline errno_t strcpy_s(char* dest, size_t destMax, const char* src) {
  if (dest == nullptr || src == nullptr || destMax == 0) return EINVAL;
  const size_t size = std::strlen(src) + 1;
  if (size > destMax) return dest[0] = '\0', ERANGE;
  std::memcpy(dest, src, size);
  return 0;
}
inline errno_t strncpy_s(char* dest, size_t destMax, const char* src, size_t count) {
  if (dest == nullptr || src == nullptr || destMax == 0) return EINVAL;
  const size_t size = strnlen(src, count);
  if (size >= destMax) return dest[0] = '\0', ERANGE;
  std::memcpy(dest, src, size);
  dest[size] = '\0';
  return 0;
}
inline errno_t strcat_s(char* dest, size_t destMax, const char* src) {
  if (dest == nullptr || src == nullptr) return EINVAL;
  const size_t used = strnlen(dest, destMax);
  if (used == destMax) return EINVAL;
  return strcpy_s(dest + used, destMax - used, src);
}

/// The number of characters written, or -1 where they do not fit.
__attribute__((format(printf, 4, 0))) inline int vsnprintf_s(char* dest, size_t destMax, size_t count,
                                                             const char* format, va_list arguments) {
  if (dest == nullptr || format == nullptr || destMax == 0) return -1;
  const size_t room = count < destMax ? count + 1 : destMax;
  const int written = std::vsnprintf(dest, room, format, arguments);
  return written < 0 || static_cast<size_t>(written) >= room ? -1 : written;
}
__attribute__((format(printf, 4, 5))) inline int snprintf_s(char* dest, size_t destMax, size_t count,
                                                            const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const int written = vsnprintf_s(dest, destMax, count, format, arguments);
  va_end(arguments);
  return written;
}
__attribute__((format(printf, 3, 4))) inline int sprintf_s(char* dest, size_t destMax, const char* format, ...) {
  if (dest == nullptr || format == nullptr || destMax == 0) return -1;
  va_list arguments;
  va_start(arguments, format);
  const int written = std::vsnprintf(dest, destMax, format, arguments);
  va_end(arguments);
  if (written >= 0 && static_cast<size_t>(written) < destMax) return written;
  dest[0] = '\0';
  return -1;
}
