/// Sin, Cos, Tan and their inverses. Source: Ascend C API, high-level API, mathematical functions; arguments of Sin,
/// Cos and Tan are documented to lie in [-65504, 65504].
///
/// The polynomials are near-minimax fits of our own (Chebyshev interpolation in 40 digits), of errors below a tenth of
/// a unit in the last place; arguments are reduced after Cody and Waite.
#pragma once

#include "opkit/high_level/float_steps.h"

namespace opkit::high_level {

constexpr float kHalfPi = 1.57079632679489661923f;

/// dst = src - multiple * scale * pi / 2, where 2 * |multiple| * scale is a whole number below 2^16: pi / 2 is cut into
/// parts of 8 bits, so that products and differences are exact until the last. The three tensors differ.
inline void reduce_angle(const FloatSteps& steps, const Floats& dst, const Floats& src, const Floats& multiple,
                         const Floats& product, float scale) {
  constexpr float kParts[] = {0x1.92p+0f, 0x1.fap-12f, 0x1.54p-20f, 0x1.10b46p-30f};
  steps.mul(product, multiple, kParts[0] * scale);
  steps.sub(dst, src, product);
  for (int i = 1; i < 4; ++i) {
    steps.mul(product, multiple, kParts[i] * scale);
    steps.sub(dst, dst, product);
  }
}

/// (-1)^half_turns * sin(angle), angle in [-pi/2, pi/2]. Changes all tensors.
inline void signed_sine(const FloatSteps& steps, const Floats& dst, const Floats& angle, const Floats& half_turns,
                        const Floats& spare) {
  constexpr float kSine[] = {-2.4080094e-08f, 2.753646e-06f, -0.00019841087f, 0.008333333f, -0.16666667f};
  steps.odd(spare, half_turns);
  steps.mul(spare, spare, -2.0f);
  steps.add(spare, spare, 1.0f);
  steps.mul(angle, angle, spare);
  steps.odd_polynomial(dst, angle, spare, kSine);
}

inline void sin(const FloatSteps& steps, const Floats& dst, const Floats& src, const Floats* spare) {
  const Floats &half_turns = spare[0], &angle = spare[1];
  steps.mul(half_turns, src, 0.31830988618379067154f);
  steps.nearest(half_turns, half_turns);
  reduce_angle(steps, angle, src, half_turns, spare[2], 2.0f);
  signed_sine(steps, dst, angle, half_turns, spare[2]);
}

/// sin(x + pi/2): the angle is x - (half_turns - 1/2) pi.
inline void cos(const FloatSteps& steps, const Floats& dst, const Floats& src, const Floats* spare) {
  const Floats &half_turns = spare[0], &angle = spare[1];
  steps.mul(half_turns, src, 0.31830988618379067154f);
  steps.add(half_turns, half_turns, 0.5f);
  steps.nearest(half_turns, half_turns);
  steps.add(half_turns, half_turns, -0.5f);
  reduce_angle(steps, angle, src, half_turns, spare[2], 2.0f);
  steps.add(half_turns, half_turns, 0.5f);
  signed_sine(steps, dst, angle, half_turns, spare[2]);
}

/// The tangent of what is left of quarter turns, or the negative reciprocal of it.
inline void tan(const FloatSteps& steps, const Floats& dst, const Floats& src, const Floats* spare) {
  constexpr float kTangent[] = {0.0038473043f, 0.0011782999f, 0.009966545f, 0.021619873f,
                                0.053994626f,  0.1333323f,    0.33333334f};
  const Floats &quarter_turns = spare[0], &angle = spare[1], &is_odd = spare[2];
  steps.mul(quarter_turns, src, 0.63661977236758134308f);
  steps.nearest(quarter_turns, quarter_turns);
  reduce_angle(steps, angle, src, quarter_turns, spare[2], 1.0f);
  steps.odd_polynomial(dst, angle, spare[2], kTangent);
  // (t even - odd) / (even + t odd), where even is 1 - odd
  const Floats& is_even = spare[0];
  steps.odd(is_odd, quarter_turns);
  steps.mul(is_even, is_odd, -1.0f);
  steps.add(is_even, is_even, 1.0f);
  steps.mul(angle, dst, is_odd);
  steps.add(angle, angle, is_even);
  steps.mul(dst, dst, is_even);
  steps.sub(dst, dst, is_odd);
  steps.div(dst, dst, angle);
}

/// An angle beyond 45 degrees is 90 degrees less that of the reciprocal.
inline void atan(const FloatSteps& steps, const Floats& dst, const Floats& src, const Floats* spare) {
  constexpr float kArctangent[] = {-0.00093629945f, 0.0062072547f, -0.01926108f, 0.038327444f,
                                   -0.05760716f,    0.07417497f,   -0.09036742f, 0.11104707f,
                                   -0.14285319f,    0.1999999f,    -0.33333334f};
  const Floats &clamped = spare[0], &ratio = spare[1], &is_above = spare[1];
  steps.abs(ratio, src);
  steps.max(ratio, ratio, 1.0f);
  steps.clamp(clamped, src, -1.0f, 1.0f);
  steps.div(ratio, clamped, ratio);
  steps.odd_polynomial(dst, ratio, spare[2], kArctangent);
  // Beyond 1 the clamped argument is the sign.
  steps.abs(is_above, clamped);
  steps.above(is_above, is_above, 0x1.fffffep-1f);
  steps.mul(clamped, clamped, is_above);
  steps.mul(clamped, clamped, kHalfPi);
  steps.mul(is_above, is_above, -2.0f);
  steps.add(is_above, is_above, 1.0f);
  steps.mul(dst, dst, is_above);
  steps.add(dst, dst, clamped);
}

/// Leaves arcsin(s) in dst, where s is the smaller of |x| and sqrt((1 - |x|) / 2); is_above: whether it is the latter;
/// and the sign of x. Then arcsin |x| is arcsin(s) or pi/2 - 2 arcsin(s). NaN where |x| > 1.
inline void half_arcsine(const FloatSteps& steps, const Floats& dst, const Floats& src, const Floats& is_above,
                         const Floats& sign, const Floats& sine, const Floats& spare) {
  constexpr float kArcsine[] = {0.033690847f, 0.017149238f, 0.031100662f, 0.044599403f, 0.07500094f, 0.16666666f};
  steps.sign(sign, src);
  steps.abs(sine, src);
  steps.above(is_above, sine, 0.5f);
  steps.mul(spare, sine, -0.5f);
  steps.add(spare, spare, 0.5f);
  steps.sqrt(spare, spare);
  steps.min(sine, sine, spare);
  steps.odd_polynomial(dst, sine, spare, kArcsine);
}

inline void asin(const FloatSteps& steps, const Floats& dst, const Floats& src, const Floats* spare) {
  const Floats &is_above = spare[0], &sign = spare[1], &factor = spare[2];
  half_arcsine(steps, dst, src, is_above, sign, spare[2], spare[3]);
  // (1 - 3 above) p + above pi/2
  steps.mul(factor, is_above, -3.0f);
  steps.add(factor, factor, 1.0f);
  steps.mul(dst, dst, factor);
  steps.mul(is_above, is_above, kHalfPi);
  steps.add(dst, dst, is_above);
  steps.mul(dst, dst, sign);
}

inline void acos(const FloatSteps& steps, const Floats& dst, const Floats& src, const Floats* spare) {
  const Floats &is_above = spare[0], &sign = spare[1], &factor = spare[2];
  half_arcsine(steps, dst, src, is_above, sign, spare[2], spare[3]);
  // (1 - above sign) pi/2 + (3 above - 1) sign p
  steps.mul(factor, is_above, 3.0f);
  steps.add(factor, factor, -1.0f);
  steps.mul(factor, factor, sign);
  steps.mul(dst, dst, factor);
  steps.mul(is_above, is_above, sign);
  steps.mul(is_above, is_above, -kHalfPi);
  steps.add(is_above, is_above, kHalfPi);
  steps.add(dst, dst, is_above);
}

}  // namespace opkit::high_level
