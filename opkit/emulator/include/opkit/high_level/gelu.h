/// Gelu and its cheaper relatives. Source: Ascend C API, high-level API, activation functions, Gelu.
///
/// All are computed in float, so highPrecision and highPerformance change nothing. dst may be src.
#pragma once

#include "opkit/high_level/activation.h"

namespace opkit::high_level {

/// x / (1 + exp(-1.702 x))
inline void faster_gelu(const FloatSteps& steps, const Floats& dst, const Floats& src, const Floats* spare) {
  swish(steps, dst, src, spare, 1.702f);
}

/// x / (1 + exp(-sqrt(8 / pi) (x + 0.044715 x^3))): the tanh form of Gelu
inline void gelu(const FloatSteps& steps, const Floats& dst, const Floats& src, const Floats* spare) {
  steps.mul(spare[0], src, src);
  steps.mul(spare[0], spare[0], 0.044715f);
  steps.add(spare[0], spare[0], 1.0f);
  steps.mul(spare[0], spare[0], src);
  one_and_exp(steps, spare[0], spare[0], -1.5957691216057308f);
  steps.div(dst, src, spare[0]);
}

/// x (sgn(x) q + 0.5), q = 0.5 - 0.1444 (min(0.7071 |x|, 1.769) - 1.769)^2; computed as q |x| + 0.5 x
inline void faster_gelu_v2(const FloatSteps& steps, const Floats& dst, const Floats& src, const Floats* spare) {
  const Floats &magnitude = spare[0], &factor = spare[1];
  steps.abs(magnitude, src);
  steps.mul(factor, magnitude, 0.7071f);
  steps.min(factor, factor, 1.769f);
  steps.add(factor, factor, -1.769f);
  steps.mul(factor, factor, factor);
  steps.mul(factor, factor, -0.1444f);
  steps.add(factor, factor, 0.5f);
  steps.mul(factor, factor, magnitude);
  steps.mul(dst, src, 0.5f);
  steps.add(dst, dst, factor);
}

}  // namespace opkit::high_level

namespace AscendC {

#define OPKIT_GELU(name, function, spares)                                                                           \
  template <typename T, bool highPrecision = false, bool highPerformance = false>                                    \
  inline void name(const LocalTensor<T>& dstLocal, const LocalTensor<T>& srcLocal,                                   \
                   const LocalTensor<uint8_t>& sharedTmpBuffer, const uint32_t dataSize, OPKIT_HERE) {               \
    using ::opkit::high_level::Floats;                                                                               \
    const auto step = [](const ::opkit::high_level::FloatSteps& steps, const Floats& dst, const Floats& src,         \
                         const Floats* spare) { ::opkit::high_level::function(steps, dst, src, spare); };            \
    ::opkit::high_level::in_float<spares>(sharedTmpBuffer, dataSize, where, step, dstLocal, srcLocal);               \
  }                                                                                                                  \
  template <typename T, bool highPrecision = false, bool highPerformance = false>                                    \
  inline void name(const LocalTensor<T>& dstLocal, const LocalTensor<T>& srcLocal, const uint32_t dataSize,          \
                   OPKIT_HERE) {                                                                                     \
    name<T, highPrecision, highPerformance>(dstLocal, srcLocal, ::opkit::high_level::free_space(), dataSize, where); \
  }
OPKIT_GELU(FasterGelu, faster_gelu, ::opkit::high_level::kGeluSpares)
OPKIT_GELU(Gelu, gelu, ::opkit::high_level::kGeluSpares)
OPKIT_GELU(FasterGeluV2, faster_gelu_v2, ::opkit::high_level::kFasterGeluV2Spares)
#undef OPKIT_GELU

}  // namespace AscendC
