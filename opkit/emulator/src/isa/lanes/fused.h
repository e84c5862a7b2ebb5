/// Fused multiply-add: an instruction, or the same bits through doubles.
#pragma once

#include "isa/lanes/simd.h"

namespace opkit::lanes {
namespace {

#if !defined(__FMA__) && !defined(__AVX512F__)
typedef int64_t S64V __attribute__((vector_size(kVectorBytes)));

/// a * b + c, rounded once: the product is exact in a double, and the sum is rounded to odd before it is narrowed.
OPKIT_INLINE NarrowF32V fused_through_double(NarrowF32V a, NarrowF32V b, NarrowF32V c) {
  const F64V product = __builtin_convertvector(a, F64V) * __builtin_convertvector(b, F64V);
  const F64V addend = __builtin_convertvector(c, F64V);
  const F64V sum = product + addend;
  const F64V part = sum - product;
  const F64V error = (product - (sum - part)) + (addend - part);
  const S64V bits = (S64V)sum;
  // An infinite or NaN sum has a NaN error, which is neither above nor below zero.
  const S64V is_away = ((error > 0) & (sum > 0)) | ((error < 0) & (sum < 0));
  const S64V is_inexact = (error > 0) | (error < 0);
  const S64V is_even = (bits & 1) == 0;
  const S64V step = (is_away & 1) - (~is_away & 1);
  return __builtin_convertvector((F64V)(bits + (step & is_inexact & is_even)), NarrowF32V);
}
#endif

/// a * b + c, rounded once. Where the product is exact in a float, targets without the instruction need not emulate it.
template <bool is_product_exact = false>
OPKIT_INLINE F32V multiply_add(F32V a, F32V b, F32V c) {
#if defined(__AVX512F__)
  return (F32V)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
#elif defined(__FMA__)
  return (F32V)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
#else
  if constexpr (is_product_exact) return a * b + c;
  struct Halves {
    NarrowF32V low, high;
  };
  const Halves x = __builtin_bit_cast(Halves, a);
  const Halves y = __builtin_bit_cast(Halves, b);
  const Halves z = __builtin_bit_cast(Halves, c);
  const Halves result = {fused_through_double(x.low, y.low, z.low), fused_through_double(x.high, y.high, z.high)};
  return __builtin_bit_cast(F32V, result);
#endif
}

}  // namespace
}  // namespace opkit::lanes
