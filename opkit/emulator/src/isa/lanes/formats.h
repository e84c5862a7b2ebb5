/// How each data type is held while an elementwise instruction works on it: halves as floats, the rest as they are.
#pragma once

#include "isa/lanes/math.h"

namespace opkit::lanes {
namespace {

/// Integers: the memory's own layout.
template <class Vector, class Scalar>
struct IntegerFormat {
  using V = Vector;
  static constexpr size_t kLanes = sizeof(V) / sizeof(Scalar);
  static constexpr size_t kBytes = sizeof(Scalar);

  static V read(const char* address) { return load<V>(address); }
  static V read_partial(const char* address, size_t count) { return load_partial<V>(address, count * kBytes); }
  static void write(char* address, V value) { store(address, value); }
  static void write_partial(char* address, V value, size_t count) { store_partial(address, value, count * kBytes); }
  static V scalar(uint64_t bits) { return static_cast<Scalar>(bits) + V{}; }
};

struct FormatF32 {
  using V = F32V;
  static constexpr size_t kLanes = kFloats;
  static constexpr size_t kBytes = 4;

  static V read(const char* address) { return load<V>(address); }
  static V read_partial(const char* address, size_t count) { return load_partial<V>(address, count * kBytes); }
  static void write(char* address, V value) { store(address, canonical(value)); }
  static void write_partial(char* address, V value, size_t count) {
    store_partial(address, canonical(value), count * kBytes);
  }
  static V scalar(uint64_t bits) { return (F32V)(U32V{} + static_cast<uint32_t>(bits)); }
};

struct FormatF16 {
  using V = F32V;
  static constexpr size_t kLanes = kFloats;
  static constexpr size_t kBytes = 2;

  static V read(const char* address) { return widen_half(load<HalvesV>(address)); }
  static V read_partial(const char* address, size_t count) {
    return widen_half(load_partial<HalvesV>(address, count * kBytes));
  }
  static void write(char* address, V value) { store(address, narrow_half(canonical(value))); }
  static void write_partial(char* address, V value, size_t count) {
    store_partial(address, narrow_half(canonical(value)), count * kBytes);
  }
  static V scalar(uint64_t bits) { return widen_half(HalvesV{} + static_cast<uint16_t>(bits)); }
};

using FormatS16 = IntegerFormat<S16V, int16_t>;
using FormatU16 = IntegerFormat<U16V, uint16_t>;
using FormatS32 = IntegerFormat<S32V, int32_t>;
using FormatU32 = IntegerFormat<U32V, uint32_t>;

// The functions that the instruction rows name, for every format that some row uses them with.

OPKIT_INLINE F32V absolute(F32V a) { return (F32V)((U32V)a & 0x7fffffff); }
OPKIT_INLINE F32V sqrt(F32V a) { return square_root(a); }
OPKIT_INLINE F32V relu(F32V a) { return a <= 0.0f ? F32V{} : a; }
OPKIT_INLINE F32V leaky_relu(F32V a, F32V s) { return a >= 0.0f ? a : a * s; }

template <class V>
OPKIT_INLINE V relu(V a) {
  return a > 0 ? a : V{};
}
template <class V>
OPKIT_INLINE V maximum(V a, V b) {
  return a > b ? a : b;
}
template <class V>
OPKIT_INLINE V minimum(V a, V b) {
  return a < b ? a : b;
}

// Shift counts are the same in every lane.
template <class V>
OPKIT_INLINE V shift_left(V a, V s) {
  const int64_t width = 8 * sizeof(a[0]);
  const V shifted = s[0] >= width ? V{} : a << s;
  if ((V{} - 1 < V{})[0] == 0) return shifted;  // unsigned
  const V sign = (V{} + 1) << static_cast<int>(width - 1);
  return (a & sign) | (shifted & ~sign);
}

template <class V>
OPKIT_INLINE V shift_right(V a, V s, V round) {
  const int64_t width = 8 * sizeof(a[0]);
  const bool is_signed = (V{} - 1 < V{})[0] != 0;
  if (s[0] == 0) return a;
  // A shift by the width leaves the sign, or nothing.
  const V last = s - 1;  // shifting by one less first leaves the bit that rounds at the bottom
  const V almost = a >> last;
  const V result = s[0] >= width && !is_signed ? V{} : almost >> 1;
  return round[0] != 0 && is_signed ? result + (almost & 1) : result;
}

}  // namespace
}  // namespace opkit::lanes
