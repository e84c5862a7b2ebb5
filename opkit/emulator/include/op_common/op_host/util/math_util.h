/// Integer arithmetic that tiling functions use.
#pragma once

#include <cmath>
#include <limits>
#include <type_traits>

namespace Ops {
namespace Base {

/// The quotient rounded up; `dividend` itself when `divisor` is 0.
template <typename Dividend, typename Divisor>
constexpr Dividend CeilDiv(Dividend dividend, Divisor divisor) {
  static_assert(std::is_integral<Dividend>::value && std::is_integral<Divisor>::value, "CeilDiv takes integers");
  if (divisor == 0) return dividend;
  const Dividend quotient = static_cast<Dividend>(dividend / static_cast<Dividend>(divisor));
  const bool has_rest = dividend % static_cast<Dividend>(divisor) != 0;
  const bool is_positive = (dividend > 0) == (divisor > 0);
  return static_cast<Dividend>(quotient + (has_rest && is_positive ? 1 : 0));
}

/// The quotient rounded towards zero; `dividend` itself when `divisor` is 0.
template <typename Dividend, typename Divisor>
constexpr Dividend FloorDiv(Dividend dividend, Divisor divisor) {
  return divisor == 0 ? dividend : static_cast<Dividend>(dividend / static_cast<Dividend>(divisor));
}

/// `value` rounded up to a multiple of `alignment`.
template <typename Value, typename Alignment>
constexpr Value CeilAlign(Value value, Alignment alignment) {
  return alignment == 0 ? value : static_cast<Value>(CeilDiv(value, alignment) * static_cast<Value>(alignment));
}

/// `value` rounded down to a multiple of `alignment`.
template <typename Value, typename Alignment>
constexpr Value FloorAlign(Value value, Alignment alignment) {
  return alignment == 0 ? value : static_cast<Value>(FloorDiv(value, alignment) * static_cast<Value>(alignment));
}

/// Whether two numbers differ by no more than the distance from 1 to the next number of their type.
template <typename T>
bool IsFloatEqual(T left, T right) {
  static_assert(std::is_floating_point<T>::value, "IsFloatEqual takes floating-point numbers");
  return std::abs(left - right) <= std::numeric_limits<T>::epsilon();
}

}  // namespace Base
}  // namespace Ops
