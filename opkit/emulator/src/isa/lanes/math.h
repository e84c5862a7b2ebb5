/// Functions of float vectors: our own polynomials, no libm, at most 1 ulp from the true value.
#pragma once

#include "isa/lanes/fused.h"

namespace opkit::lanes {
namespace {

constexpr float kLog2E = 0x1.715476p+0f;
constexpr float kLn2High = 0x1.62e4p-1f;  // 15 bits: a product with |n| < 512 is exact
constexpr float kLn2Low = 0x1.7f7d1cp-20f;
constexpr float kRounder = 0x1.8p23f;  // adding it rounds to an integer, kept in the low bits

/// x = n ln 2 + r, |r| <= ln 2 / 2; r = high - low.
struct ExpParts {
  F32V rounded;  ///< n + kRounder
  F32V high, low, r;
};

OPKIT_INLINE ExpParts split_exp(F32V x) {
  ExpParts parts;
  parts.rounded = multiply_add(x, broadcast(kLog2E), broadcast(kRounder));
  const F32V n = parts.rounded - kRounder;
  parts.high = multiply_add(n, broadcast(-kLn2High), x);  // exact
  parts.low = n * kLn2Low;
  parts.r = parts.high - parts.low;
  return parts;
}

/// (e^r - 1 - r) / r^2, fitted for least relative error.
OPKIT_INLINE F32V exp_polynomial(F32V r) {
  F32V p = multiply_add(broadcast(0x1.6a4f70p-10f), r, broadcast(0x1.123980p-7f));
  p = multiply_add(p, r, broadcast(0x1.5558aep-5f));
  p = multiply_add(p, r, broadcast(0x1.555492p-3f));
  return multiply_add(p, r, broadcast(0x1.fffffcp-2f));
}

/// e^r for the parts, in [0.7, 1.42].
OPKIT_INLINE F32V exp_of_remainder(const ExpParts& parts) {
  const F32V r = parts.r;
  // high - low is added late and in parts, so its rounding does not count.
  return 1.0f + (parts.high + multiply_add(exp_polynomial(r), r * r, -parts.low));
}

/// Where the result may be subnormal, infinite or NaN.
__attribute__((noinline)) F32V exp_everywhere(F32V x) {
  const ExpParts parts = split_exp(clamp(x, -104.0f, 89.0f));
  const F32V y = exp_of_remainder(parts);
  const S32V n = (S32V)parts.rounded - (S32V)broadcast(kRounder);
  const S32V first = n >> 1;
  const S32V second = n - first;
  const F32V result = y * (F32V)((first + 127) << 23) * (F32V)((second + 127) << 23);
  return x == x ? result : x;
}

/// For |x| <= kExpUsual, where the result is a normal number.
constexpr float kExpUsual = 87.0f;
OPKIT_INLINE F32V exp_usual(F32V x) {
  const ExpParts parts = split_exp(x);
  return (F32V)((S32V)exp_of_remainder(parts) + ((S32V)parts.rounded << 23));
}

OPKIT_INLINE F32V exp_f32(F32V x) {
  if (__builtin_expect(any_beyond(x, kExpUsual), 0)) return exp_everywhere(x);
  return exp_usual(x);
}

/// For values that were halves and will be rounded to halves: fewer steps that give the same halves (a test compares
/// all of them). Clamped where the result rounds to 0 or to infinity anyway, so there is no slow path.
OPKIT_INLINE F32V exp_f16(F32V x) {
  const ExpParts parts = split_exp(clamp(x, -18.0f, 12.0f));
  const F32V r = parts.r;
  const F32V one = broadcast(1.0f);
  const F32V y = multiply_add(multiply_add(exp_polynomial(r), r, one), r, one);
  return (F32V)((S32V)y + ((S32V)parts.rounded << 23));
}

/// Natural logarithm. With x = 2^k (1 + f) and s = f / (2 + f), log(1 + f) = 2s + s R(s^2).
OPKIT_INLINE F32V ln_f32(F32V x) {
  const auto is_tiny = x < 0x1p-126f;
  const U32V bits = (U32V)(is_tiny ? x * 0x1p25f : x);
  const S32V k = (S32V)(bits - 0x3f3504f3) >> 23;  // 0x3f3504f3: the square root of one half
  const F32V f = (F32V)(bits - (U32V)(k << 23)) - 1.0f;
  const F32V exponent = __builtin_convertvector(is_tiny ? k - 25 : k, F32V);
  const F32V s = f / (2.0f + f);
  const F32V z = s * s;
  const F32V r = z * (0.666667759f + z * (0.399775714f + z * 0.298713505f));
  const F32V half_square = 0.5f * f * f;
  const F32V tail = half_square - (s * (half_square + r) + exponent * kLn2Low);
  F32V result = exponent * kLn2High - (tail - f);
  const F32V infinity = broadcast(__builtin_inff());
  result = x == infinity ? infinity : result;
  result = x == 0.0f ? -infinity : result;
  return x >= 0.0f ? result : broadcast(__builtin_nanf(""));
}

/// 1 / sqrt(x) through double: correctly rounded but for cases closer than 2^-29 to a tie.
OPKIT_INLINE F32V rsqrt_f32(F32V x) {
  F32V result;
  for (int half = 0; half < 2; ++half) {
    const F64V wide = __builtin_convertvector(load<NarrowF32V>((const char*)&x + half * sizeof(NarrowF32V)), F64V);
    store((char*)&result + half * sizeof(NarrowF32V), __builtin_convertvector(1.0 / square_root(wide), NarrowF32V));
  }
  return result;
}

/// The host's instructions give `b` unless `a` is beyond it, which leaves a NaN in `a` to look for.
OPKIT_INLINE F32V maximum(F32V a, F32V b) {
#if defined(__AVX512F__)
  const __mmask16 is_nan = _mm512_cmp_ps_mask((__m512)a, (__m512)a, _CMP_UNORD_Q);
  return (F32V)_mm512_mask_mov_ps(_mm512_max_ps((__m512)a, (__m512)b), is_nan, (__m512)a);
#elif defined(__AVX2__)
  const __m256 is_nan = _mm256_cmp_ps((__m256)a, (__m256)a, _CMP_UNORD_Q);
  return (F32V)_mm256_blendv_ps(_mm256_max_ps((__m256)a, (__m256)b), (__m256)a, is_nan);
#else
  return (a > b) | (a != a) ? a : b;
#endif
}
OPKIT_INLINE F32V minimum(F32V a, F32V b) {
#if defined(__AVX512F__)
  const __mmask16 is_nan = _mm512_cmp_ps_mask((__m512)a, (__m512)a, _CMP_UNORD_Q);
  return (F32V)_mm512_mask_mov_ps(_mm512_min_ps((__m512)a, (__m512)b), is_nan, (__m512)a);
#elif defined(__AVX2__)
  const __m256 is_nan = _mm256_cmp_ps((__m256)a, (__m256)a, _CMP_UNORD_Q);
  return (F32V)_mm256_blendv_ps(_mm256_min_ps((__m256)a, (__m256)b), (__m256)a, is_nan);
#else
  return (a < b) | (a != a) ? a : b;
#endif
}

}  // namespace
}  // namespace opkit::lanes
