/// Functions on scalars. Source: Ascend C API, scalar compute; appendix, changed names.
#pragma once

#include <cstdint>
#include <type_traits>

#include "opkit/api/enums_vector.h"
#include "opkit/api/half.h"

namespace opkit::detail {

/// An int32_t next to `value`, saturated; NaN gives 0, as the vector instruction does.
template <AscendC::RoundMode mode>
constexpr int32_t round_to_int(float value) {
  using AscendC::RoundMode;
  if (value != value) return 0;
  if (value >= 0x1p31f) return INT32_MAX;
  if (value < -0x1p31f) return INT32_MIN;
  const int64_t truncated = static_cast<int64_t>(value);
  const float rest = value - static_cast<float>(truncated);  // exact: both are of one magnitude
  const int64_t away = value < 0 ? -1 : 1;
  const float distance = rest < 0 ? -rest : rest;
  bool is_away = false;
  switch (mode) {
    case RoundMode::CAST_FLOOR: is_away = rest < 0; break;
    case RoundMode::CAST_CEIL: is_away = rest > 0; break;
    case RoundMode::CAST_ROUND: is_away = distance >= 0.5f; break;
    default: is_away = distance > 0.5f || (distance == 0.5f && truncated % 2 != 0);
  }
  return static_cast<int32_t>(truncated + (is_away ? away : 0));
}

/// The half towards zero, and its last bit set when that is not exact.
constexpr half round_to_odd(float value) {
  const half nearest(value);
  const float back = nearest;
  if (back == value || value != value) return nearest;
  const float magnitude = value < 0 ? -value : value;
  const bool is_beyond = (back < 0 ? -back : back) > magnitude;
  const uint16_t towards_zero = static_cast<uint16_t>(nearest.bits() - (is_beyond ? 1 : 0));
  return half::from_bits(static_cast<uint16_t>(towards_zero | 1));
}

}  // namespace opkit::detail

namespace AscendC {

/// A float as an int32_t (CAST_RINT, CAST_FLOOR, CAST_CEIL, CAST_ROUND) or as a half (CAST_ODD).
template <typename T, typename U, RoundMode roundMode>
constexpr U Cast(T valueIn) {
  constexpr bool is_to_half = std::is_same_v<U, half> && roundMode == RoundMode::CAST_ODD;
  constexpr bool is_to_int =
      std::is_same_v<U, int32_t> && (roundMode == RoundMode::CAST_RINT || roundMode == RoundMode::CAST_FLOOR ||
                                     roundMode == RoundMode::CAST_CEIL || roundMode == RoundMode::CAST_ROUND);
  static_assert(std::is_same_v<T, float> && (is_to_half || is_to_int),
                "Cast of a scalar: float to half takes CAST_ODD, float to int32_t CAST_RINT, CAST_FLOOR, CAST_CEIL and "
                "CAST_ROUND");
  if constexpr (is_to_half) {
    return opkit::detail::round_to_odd(valueIn);
  } else {
    return opkit::detail::round_to_int<roundMode>(valueIn);
  }
}
template <typename T, typename U, RoundMode roundMode>
constexpr U ScalarCast(T valueIn) {
  return Cast<T, U, roundMode>(valueIn);
}
constexpr float Cast(const bfloat16_t& bVal) { return bVal; }
constexpr bfloat16_t Cast(const float& fVal) { return bfloat16_t(fVal); }

/// Zeros in front of the highest one; 64 for 0.
constexpr int64_t CountLeadingZero(uint64_t valueIn) { return valueIn == 0 ? 64 : __builtin_clzll(valueIn); }
constexpr int64_t ScalarCountLeadingZero(uint64_t valueIn) { return CountLeadingZero(valueIn); }

/// Bits behind the sign bit that equal it, without a gap.
constexpr int64_t CountBitsCntSameAsSignBit(int64_t valueIn) { return __builtin_clrsbll(valueIn); }

/// How many bits are `countValue`.
template <int countValue>
constexpr int64_t GetBitCount(uint64_t valueIn) {
  static_assert(countValue == 0 || countValue == 1, "GetBitCount: the bit to count is 0 or 1");
  return __builtin_popcountll(countValue == 1 ? valueIn : ~valueIn);
}
template <int countValue>
constexpr int64_t ScalarGetCountOfValue(uint64_t valueIn) {
  return GetBitCount<countValue>(valueIn);
}

/// Place of the lowest bit that is `countValue`; -1 without one.
template <int countValue>
constexpr int64_t GetSFFValue(uint64_t valueIn) {
  static_assert(countValue == 0 || countValue == 1, "GetSFFValue: the bit to look for is 0 or 1");
  const uint64_t bits = countValue == 1 ? valueIn : ~valueIn;
  return bits == 0 ? -1 : __builtin_ctzll(bits);
}
template <int countValue>
constexpr int64_t ScalarGetSFFValue(uint64_t valueIn) {
  return GetSFFValue<countValue>(valueIn);
}

}  // namespace AscendC
