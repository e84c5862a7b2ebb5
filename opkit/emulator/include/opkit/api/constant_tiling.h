/// Tiling structs from bytes that the compiler knows. Source: programming guide, ahead-of-time compilation.
#pragma once

#include <cstddef>
#include <cstdint>

/// The struct whose bytes these are; `bytes` has sizeof(T) of them.
template <typename T>
constexpr T convert_from_bytes(const uint8_t* bytes) {
  struct Image {
    uint8_t at[sizeof(T)];
  } image{};
  for (size_t i = 0; i < sizeof(T); ++i) image.at[i] = bytes[i];
  return __builtin_bit_cast(T, image);
}
