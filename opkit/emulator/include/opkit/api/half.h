/// The 16-bit floating types as C++ scalars. Both widen to float for arithmetic and round to nearest even back.
#pragma once

#include <cstdint>
#include <type_traits>

namespace opkit::detail {

constexpr uint32_t float_bits(float value) { return __builtin_bit_cast(uint32_t, value); }
constexpr float float_from_bits(uint32_t bits) { return __builtin_bit_cast(float, bits); }

constexpr uint16_t half_bits(float value) {
  const uint32_t bits = float_bits(value);
  const uint16_t sign = static_cast<uint16_t>(bits >> 16 & 0x8000);
  const uint32_t magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000) return static_cast<uint16_t>(sign | 0x7e00 | (magnitude >> 13 & 0x3ff));
  if (magnitude >= 0x477ff000) return static_cast<uint16_t>(sign | 0x7c00);  // 65520 and beyond
  if (magnitude < 0x38800000) {  // below the smallest normal half: 0.5f's last place is a subnormal half's
    const float shifted = float_from_bits(magnitude) + 0.5f;
    return static_cast<uint16_t>(sign | (float_bits(shifted) - float_bits(0.5f)));
  }
  return static_cast<uint16_t>(sign | (magnitude - (112u << 23) + 0xfff + (magnitude >> 13 & 1)) >> 13);
}

constexpr float half_value(uint16_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000) << 16;
  const uint32_t magnitude = static_cast<uint32_t>(bits & 0x7fff) << 13;
  if (magnitude >= 0x0f800000) return float_from_bits(sign | magnitude | 0x7f800000);
  return float_from_bits(sign | float_bits(float_from_bits(magnitude) * 0x1p112f));
}

constexpr uint16_t bfloat16_bits(float value) {
  const uint32_t bits = float_bits(value);
  if ((bits & 0x7fffffff) > 0x7f800000) return static_cast<uint16_t>(bits >> 16 | 0x40);
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

constexpr float bfloat16_value(uint16_t bits) { return float_from_bits(static_cast<uint32_t>(bits) << 16); }

/// What half and bfloat16_t share; `to_bits` and `to_value` are their conversions.
template <uint16_t (*to_bits)(float), float (*to_value)(uint16_t)>
class Float16 {
 public:
  Float16() = default;
  template <typename Number, typename = decltype(static_cast<float>(Number()))>
  constexpr Float16(Number value) : bits_(to_bits(static_cast<float>(value))) {}  // NOLINT: as the built-in types
  constexpr operator float() const { return to_value(bits_); }                    // NOLINT

  static constexpr Float16 from_bits(uint16_t bits) {
    Float16 value(0.0f);
    value.bits_ = bits;
    return value;
  }
  constexpr uint16_t bits() const { return bits_; }

  constexpr Float16 operator-() const { return from_bits(static_cast<uint16_t>(bits_ ^ 0x8000)); }
  Float16& operator+=(float other) { return *this = Float16(static_cast<float>(*this) + other); }
  Float16& operator-=(float other) { return *this = Float16(static_cast<float>(*this) - other); }
  Float16& operator*=(float other) { return *this = Float16(static_cast<float>(*this) * other); }
  Float16& operator/=(float other) { return *this = Float16(static_cast<float>(*this) / other); }

 private:
  uint16_t bits_;
};

}  // namespace opkit::detail

using half = opkit::detail::Float16<opkit::detail::half_bits, opkit::detail::half_value>;
using bfloat16_t = opkit::detail::Float16<opkit::detail::bfloat16_bits, opkit::detail::bfloat16_value>;

// The vendor's compiler also has these names.
using float16_t = half;
using float32_t = float;
#define __bf16 bfloat16_t

// What DTYPE_X of a complex tensor is. These chips have no complex types of their own, and kernels that need a name
// give it themselves, as this very alias: numbers are moved as words, and no instruction takes them. Source: Ascend C
// API, complex32/complex64; which words: public kernels for these chips.
using complex32 = uint32_t;
using complex64 = uint64_t;

namespace AscendC {

/// Two of them share a byte. It names the elements of tensors; there are no scalars of it.
struct int4b_t {
  uint8_t storage;
};

/// The bits of one element in memory: of int4b_t two share a byte.
template <typename T>
struct SizeOfBits {
  static constexpr uint64_t value = std::is_same_v<std::remove_cv_t<T>, int4b_t> ? 4 : sizeof(T) * 8;
};

/// ToFloat and ToBfloat16. Source: Ascend C API, scalar compute.
constexpr float ToFloat(const bfloat16_t& value) { return value; }
constexpr bfloat16_t ToBfloat16(const float& value) { return bfloat16_t(value); }

}  // namespace AscendC
