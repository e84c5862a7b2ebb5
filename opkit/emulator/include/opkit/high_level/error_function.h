/// Erf and Erfc. Source: Ascend C API, high-level API, mathematical functions.
///
/// The polynomials are near-minimax fits of our own, as in trigonometric.h.
#pragma once

#include "opkit/high_level/float_steps.h"

namespace opkit::high_level {

/// Up to 1 x P(x^2); beyond it 1 - exp(-Q(|x|)), and from 4 on 1.
inline void erf(const FloatSteps& steps, const Floats& dst, const Floats& src, const Floats* spare) {
  constexpr float kNear[] = {-9.667045e-06f, 0.00011265959f, -0.0008484080f, 0.0052210316f,
                             -0.02686543f,   0.11283782f,    -0.37612638f,   1.1283792f};
  constexpr float kFar[] = {7.582682e-08f, -3.3216845e-06f, 6.22983e-05f, -0.00068583665f, 0.005064947f,
                            -0.027099524f, 0.11105502f,     0.630953f,    1.1306752f,      -0.00041632922f};
  const Floats &clamped = spare[0], &is_above = spare[1], &large = spare[2], &square = spare[3];
  steps.clamp(clamped, src, -1.0f, 1.0f);
  steps.abs(is_above, src);
  steps.min(is_above, is_above, 4.0f);
  steps.polynomial(large, is_above, kFar);
  steps.mul(large, large, -1.0f);
  steps.exp(large, large);
  steps.mul(large, large, -1.0f);
  steps.add(large, large, 1.0f);
  steps.mul(large, large, clamped);  // beyond 1 the sign
  steps.above(is_above, is_above, 1.0f);
  steps.mul(square, clamped, clamped);
  steps.polynomial(dst, square, kNear);
  steps.mul(dst, dst, clamped);
  steps.select(dst, dst, large, is_above);
}

/// exp(-a^2) t P(t), t = 1 / (1 + a / 2), a = |x|; of negative x: 2 less that. a^2 is h^2 + (a - h) (a + h), where h is
/// a's upper 12 bits, because a rounded square would cost the exponential its last digits.
inline void erfc(const FloatSteps& steps, const Floats& dst, const Floats& src, const Floats* spare) {
  constexpr float kScaled[] = {-0.03214441f, 0.23841213f, -0.7563683f, 1.3007573f,  -1.2557166f, 0.66536582f,
                               -0.30158529f, 0.16848554f, 0.15984102f, 0.24891146f, 0.2819416f,  0.28209978f};
  constexpr float kZeroFrom = 10.2f;  // erfc(10.1) is below the smallest float
  const Floats &magnitude = spare[0], &is_negative = spare[1], &t = spare[2], &upper = spare[2], &lower = spare[3];
  steps.negative(is_negative, src);
  steps.abs(magnitude, src);
  steps.min(magnitude, magnitude, kZeroFrom);
  steps.mul(t, magnitude, 0.5f);
  steps.add(t, t, 1.0f);
  steps.reciprocal(t, t);
  steps.polynomial(dst, t, kScaled);
  steps.mul(dst, dst, t);
  steps.mul(upper, magnitude, 4097.0f);
  steps.sub(lower, upper, magnitude);
  steps.sub(upper, upper, lower);
  steps.sub(lower, magnitude, upper);
  steps.add(magnitude, magnitude, upper);
  steps.mul(lower, lower, magnitude);
  steps.mul(lower, lower, -1.0f);
  steps.exp(lower, lower);
  steps.mul(dst, dst, lower);
  steps.mul(upper, upper, upper);
  steps.mul(upper, upper, -1.0f);
  steps.exp(upper, upper);
  steps.mul(dst, dst, upper);
  // (1 - 2 negative) e + 2 negative
  steps.mul(is_negative, is_negative, 2.0f);
  steps.mul(magnitude, dst, is_negative);
  steps.sub(dst, dst, magnitude);
  steps.add(dst, dst, is_negative);
}

}  // namespace opkit::high_level
