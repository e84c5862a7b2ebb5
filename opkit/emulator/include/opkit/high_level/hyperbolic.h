/// Sinh, Cosh, Tanh and their inverses. Source: Ascend C API, high-level API, mathematical functions.
///
/// The polynomials near 0 are near-minimax fits of our own, as in trigonometric.h; the rest is exponentials and
/// logarithms. The documents give Asinh and Acosh arguments up to 65504.
#pragma once

#include "opkit/high_level/float_steps.h"

namespace opkit::high_level {

/// grown = exp(|x|) / 2, shrunk = exp(-|x|) / 2, by way of exp(|x| / 2), which does not overflow before the result.
inline void half_exponentials(const FloatSteps& steps, const Floats& grown, const Floats& shrunk,
                              const Floats& magnitude) {
  steps.mul(grown, magnitude, 0.5f);
  steps.exp(grown, grown);
  steps.mul(shrunk, grown, grown);
  steps.reciprocal(shrunk, shrunk);
  steps.mul(shrunk, shrunk, 0.5f);
  steps.mul(grown, grown, 0.70710678118654752440f);
  steps.mul(grown, grown, grown);
}

inline void sinh(const FloatSteps& steps, const Floats& dst, const Floats& src, const Floats* spare) {
  constexpr float kSinh[] = {2.8062802e-06f, 0.00019838102f, 0.008333339f, 0.16666667f};
  const Floats &clamped = spare[0], &is_above = spare[1], &large = spare[2];
  steps.clamp(clamped, src, -1.0f, 1.0f);
  steps.abs(is_above, src);
  half_exponentials(steps, large, spare[3], is_above);
  steps.sub(large, large, spare[3]);
  steps.above(is_above, is_above, 1.0f);
  steps.mul(large, large, clamped);
  steps.odd_polynomial(dst, clamped, spare[3], kSinh);
  steps.select(dst, dst, large, is_above);
}

inline void cosh(const FloatSteps& steps, const Floats& dst, const Floats& src, const Floats* spare) {
  steps.abs(dst, src);
  half_exponentials(steps, spare[0], spare[1], dst);
  steps.add(dst, spare[0], spare[1]);
}

/// Beyond 1/2: 1 - 2 / (exp(2 |x|) + 1) with the sign of x.
inline void tanh(const FloatSteps& steps, const Floats& dst, const Floats& src, const Floats* spare) {
  constexpr float kTanh[] = {0.0025263906f, -0.0085263323f, 0.02181845f, -0.0539647f, 0.13333324f, -0.33333334f};
  const Floats &clamped = spare[0], &is_above = spare[1], &large = spare[2];
  steps.clamp(clamped, src, -0.5f, 0.5f);
  steps.abs(is_above, src);
  steps.mul(large, is_above, 2.0f);
  steps.exp(large, large);
  steps.add(large, large, 1.0f);
  steps.reciprocal(large, large);
  steps.mul(large, large, -4.0f);
  steps.add(large, large, 2.0f);
  steps.mul(large, large, clamped);
  steps.above(is_above, is_above, 0.5f);
  steps.odd_polynomial(dst, clamped, spare[3], kTanh);
  steps.select(dst, dst, large, is_above);
}

/// dst = ln(1 + x): the logarithm of the rounded sum, and what the rounding lost, divided by it. Changes x, which is
/// not dst.
inline void log_of_one_more(const FloatSteps& steps, const Floats& dst, const Floats& x, const Floats& sum,
                            const Floats& finite) {
  constexpr float kLargest = 0x1.fffffep127f;
  steps.min(finite, x, kLargest);
  steps.sub(x, x, finite);  // infinite where x is
  steps.add(sum, finite, 1.0f);
  steps.add(dst, sum, -1.0f);
  steps.sub(finite, finite, dst);
  steps.div(finite, finite, sum);
  steps.ln(dst, sum);
  steps.add(dst, dst, finite);
  steps.add(dst, dst, x);
}

/// sign(x) ln(1 + a + a / (1/a + sqrt(1/a^2 + 1))), a = |x|
inline void asinh(const FloatSteps& steps, const Floats& dst, const Floats& src, const Floats* spare) {
  const Floats &magnitude = spare[0], &reciprocal = spare[1], &root = spare[2], &sign = spare[3];
  steps.sign(sign, src);
  steps.abs(magnitude, src);
  steps.reciprocal(reciprocal, magnitude);
  steps.mul(root, reciprocal, reciprocal);
  steps.add(root, root, 1.0f);
  steps.sqrt(root, root);
  steps.add(root, root, reciprocal);
  steps.div(root, magnitude, root);
  steps.add(magnitude, magnitude, root);
  log_of_one_more(steps, dst, magnitude, spare[1], spare[2]);
  steps.mul(dst, dst, sign);
}

/// ln(1 + t + sqrt(t) sqrt(t + 2)), t = x - 1
inline void acosh(const FloatSteps& steps, const Floats& dst, const Floats& src, const Floats* spare) {
  const Floats &above_one = spare[0], &root = spare[1];
  steps.add(above_one, src, -1.0f);
  steps.add(root, above_one, 2.0f);
  steps.sqrt(root, root);
  steps.sqrt(spare[2], above_one);
  steps.mul(root, root, spare[2]);
  steps.add(above_one, above_one, root);
  log_of_one_more(steps, dst, above_one, spare[1], spare[2]);
}

/// sign(x) ln(1 + 2 a / (1 - a)) / 2, a = |x|
inline void atanh(const FloatSteps& steps, const Floats& dst, const Floats& src, const Floats* spare) {
  const Floats &quotient = spare[0], &rest = spare[1], &sign = spare[3];
  steps.sign(sign, src);
  steps.abs(quotient, src);
  steps.mul(rest, quotient, -1.0f);
  steps.add(rest, rest, 1.0f);
  steps.div(quotient, quotient, rest);
  steps.mul(quotient, quotient, 2.0f);
  log_of_one_more(steps, dst, quotient, spare[1], spare[2]);
  steps.mul(dst, dst, 0.5f);
  steps.mul(dst, dst, sign);
}

}  // namespace opkit::high_level
