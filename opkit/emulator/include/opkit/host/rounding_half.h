/// Half precision values of host code, whose sums, products and quotients are halves as well: each is rounded.
/// Source: public document of CANN 9.0, aolapi, fp16_t.
#pragma once

#include <type_traits>

#include "opkit/api/half.h"

namespace opkit::host {

/// In kernels a half widens to float, and is rounded where it is stored; a reference written with this type rounds
/// after every operation, as vector instructions on halves do.
class RoundingHalf : public half {
 public:
  using half::half;
  RoundingHalf() = default;
  constexpr RoundingHalf(const half& value) : half(value) {}  // NOLINT: the kernels' type, bit for bit

  constexpr RoundingHalf operator-() const { return half::operator-(); }
  RoundingHalf& operator+=(float other) { return *this = RoundingHalf(float(*this) + other); }
  RoundingHalf& operator-=(float other) { return *this = RoundingHalf(float(*this) - other); }
  RoundingHalf& operator*=(float other) { return *this = RoundingHalf(float(*this) * other); }
  RoundingHalf& operator/=(float other) { return *this = RoundingHalf(float(*this) / other); }
};

// Templates, as these convert nothing: with a float or an int on one side the result is what C++ makes of a float.
template <typename T>
using IfRoundingHalf = std::enable_if_t<std::is_same_v<T, RoundingHalf>, T>;

template <typename T>
constexpr IfRoundingHalf<T> operator+(const T& left, const T& right) {
  return T(float(left) + float(right));
}
template <typename T>
constexpr IfRoundingHalf<T> operator-(const T& left, const T& right) {
  return T(float(left) - float(right));
}
template <typename T>
constexpr IfRoundingHalf<T> operator*(const T& left, const T& right) {
  return T(float(left) * float(right));
}
template <typename T>
constexpr IfRoundingHalf<T> operator/(const T& left, const T& right) {
  return T(float(left) / float(right));
}

}  // namespace opkit::host
