/// Rounding, Sign, Frac, Fmod, logarithms. Source: Ascend C API, high-level API, mathematical functions.
#pragma once

#include "opkit/high_level/float_steps.h"

namespace opkit::high_level {

/// Rounds floats to whole ones. A chip without that cast goes by way of integers, which take dst's place: only values
/// that an int32_t holds are documented there; those beyond saturate, a NaN becomes 0. A template, so that each chip
/// compiles its own.
template <typename Float>
inline void round_floats(const AscendC::LocalTensor<Float>& dst, const AscendC::LocalTensor<Float>& src,
                         AscendC::RoundMode mode, const FloatSteps& steps) {
  if constexpr (vec::casts(dtype_of<Float>(), dtype_of<Float>())) {
    AscendC::Cast(dst, src, mode, steps.length, steps.where);
  } else {
    const AscendC::LocalTensor<int32_t> whole = dst.template ReinterpretCast<int32_t>();
    AscendC::Cast(whole, src, mode, steps.length, steps.where);
    AscendC::PipeBarrier<PIPE_V>();
    AscendC::Cast(dst, whole, AscendC::RoundMode::CAST_NONE, steps.length, steps.where);
  }
  AscendC::PipeBarrier<PIPE_V>();
}

template <typename Float>
inline void floor(const FloatSteps& steps, const Float& dst, const Float& src, const Float*) {
  round_floats(dst, src, AscendC::RoundMode::CAST_FLOOR, steps);
}
template <typename Float>
inline void ceil(const FloatSteps& steps, const Float& dst, const Float& src, const Float*) {
  round_floats(dst, src, AscendC::RoundMode::CAST_CEIL, steps);
}
template <typename Float>
inline void trunc(const FloatSteps& steps, const Float& dst, const Float& src, const Float*) {
  round_floats(dst, src, AscendC::RoundMode::CAST_TRUNC, steps);
}
template <typename Float>
inline void round(const FloatSteps& steps, const Float& dst, const Float& src, const Float*) {
  round_floats(dst, src, AscendC::RoundMode::CAST_ROUND, steps);
}
template <typename Float>
inline void frac(const FloatSteps& steps, const Float& dst, const Float& src, const Float* spare) {
  trunc(steps, spare[0], src, spare);
  steps.sub(dst, src, spare[0]);
}
/// a - trunc(a / b) * b, as documented: not exact where the quotient has many digits.
template <typename Float>
inline void fmod(const FloatSteps& steps, const Float& dst, const Float& a, const Float& b, const Float* spare) {
  steps.div(spare[0], a, b);
  trunc(steps, spare[0], spare[0], spare);
  steps.mul(spare[0], spare[0], b);
  steps.sub(dst, a, spare[0]);
}

inline void sign(const FloatSteps& steps, const Floats& dst, const Floats& src, const Floats*) { steps.sign(dst, src); }
inline void log(const FloatSteps& steps, const Floats& dst, const Floats& src, const Floats*) { steps.ln(dst, src); }
inline void log2(const FloatSteps& steps, const Floats& dst, const Floats& src, const Floats*) {
  steps.ln(dst, src);
  steps.mul(dst, dst, 1.44269504088896340736f);
}
inline void log10(const FloatSteps& steps, const Floats& dst, const Floats& src, const Floats*) {
  steps.ln(dst, src);
  steps.mul(dst, dst, 0.43429448190325182765f);
}

}  // namespace opkit::high_level
