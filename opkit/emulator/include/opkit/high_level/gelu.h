/// Gelu and its cheaper relatives. Source: Ascend C API, high-level API, activation functions, Gelu.
///
/// All are computed in float, so highPrecision and highPerformance change nothing. dst may be src.
#pragma once

#include "opkit/high_level/elementwise.h"

namespace opkit::high_level {

/// dst = x / (1 + exp(spare))
inline void divide_by_logistic(const AscendC::LocalTensor<float>& dst, const AscendC::LocalTensor<float>& x,
                               const AscendC::LocalTensor<float>& spare, uint32_t length, Where where) {
  using namespace AscendC;
  PipeBarrier<PIPE_V>();
  ::AscendC::Exp(spare, spare, length, where);
  PipeBarrier<PIPE_V>();
  Adds(spare, spare, 1.0f, length, where);
  PipeBarrier<PIPE_V>();
  Div(dst, x, spare, length, where);
}

}  // namespace opkit::high_level

namespace AscendC {

/// x / (1 + exp(-1.702 x))
template <typename T, bool highPrecision = false, bool highPerformance = false>
inline void FasterGelu(const LocalTensor<T>& dstLocal, const LocalTensor<T>& srcLocal,
                       const LocalTensor<uint8_t>& sharedTmpBuffer, const uint32_t dataSize, OPKIT_HERE) {
  opkit::high_level::in_float(dstLocal, srcLocal, sharedTmpBuffer, dataSize, where,
                              [&](const LocalTensor<float>& dst, const LocalTensor<float>& src,
                                  const LocalTensor<float>& spare, uint32_t length) {
                                Muls(spare, src, -1.702f, length, where);
                                opkit::high_level::divide_by_logistic(dst, src, spare, length, where);
                              });
}

/// x / (1 + exp(-sqrt(8 / pi) (x + 0.044715 x^3))): the tanh form of Gelu
template <typename T, bool highPrecision = false, bool highPerformance = false>
inline void Gelu(const LocalTensor<T>& dstLocal, const LocalTensor<T>& srcLocal,
                 const LocalTensor<uint8_t>& sharedTmpBuffer, const uint32_t dataSize, OPKIT_HERE) {
  opkit::high_level::in_float(dstLocal, srcLocal, sharedTmpBuffer, dataSize, where,
                              [&](const LocalTensor<float>& dst, const LocalTensor<float>& src,
                                  const LocalTensor<float>& spare, uint32_t length) {
                                Mul(spare, src, src, length, where);
                                PipeBarrier<PIPE_V>();
                                Muls(spare, spare, 0.044715f, length, where);
                                PipeBarrier<PIPE_V>();
                                Adds(spare, spare, 1.0f, length, where);
                                PipeBarrier<PIPE_V>();
                                Mul(spare, spare, src, length, where);
                                PipeBarrier<PIPE_V>();
                                Muls(spare, spare, -1.5957691216057308f, length, where);
                                opkit::high_level::divide_by_logistic(dst, src, spare, length, where);
                              });
}

/// x (sgn(x) q + 0.5), q = 0.5 - 0.1444 (min(0.7071 |x|, 1.769) - 1.769)^2; computed as q |x| + 0.5 x
template <typename T, bool highPrecision = false, bool highPerformance = false>
inline void FasterGeluV2(const LocalTensor<T>& dstLocal, const LocalTensor<T>& srcLocal,
                         const LocalTensor<uint8_t>& sharedTmpBuffer, const uint32_t dataSize, OPKIT_HERE) {
  // Two spare tensors: the space that in_float divides is followed by one for the second.
  constexpr uint32_t kShares = std::is_same_v<T, half> ? 3 : 2;
  const uint32_t share = sharedTmpBuffer.GetSize() / kShares / opkit::kRepeatBytes * opkit::kRepeatBytes;
  LocalTensor<uint8_t> divided = sharedTmpBuffer;
  divided.SetSize(share * (kShares - 1));
  const LocalTensor<float> magnitude = sharedTmpBuffer[share * (kShares - 1)].template ReinterpretCast<float>();
  opkit::high_level::in_float(dstLocal, srcLocal, divided, dataSize, where,
                              [&](const LocalTensor<float>& dst, const LocalTensor<float>& src,
                                  const LocalTensor<float>& spare, uint32_t length) {
                                Abs(magnitude, src, length, where);
                                PipeBarrier<PIPE_V>();
                                Muls(spare, magnitude, 0.7071f, length, where);
                                PipeBarrier<PIPE_V>();
                                Mins(spare, spare, 1.769f, length, where);
                                PipeBarrier<PIPE_V>();
                                Adds(spare, spare, -1.769f, length, where);
                                PipeBarrier<PIPE_V>();
                                Mul(spare, spare, spare, length, where);
                                PipeBarrier<PIPE_V>();
                                Muls(spare, spare, -0.1444f, length, where);
                                PipeBarrier<PIPE_V>();
                                Adds(spare, spare, 0.5f, length, where);
                                PipeBarrier<PIPE_V>();
                                Mul(spare, spare, magnitude, length, where);
                                Muls(dst, src, 0.5f, length, where);
                                PipeBarrier<PIPE_V>();
                                Add(dst, dst, spare, length, where);
                              });
}

#define OPKIT_GELU_WITHOUT_SPACE(name)                                                                               \
  template <typename T, bool highPrecision = false, bool highPerformance = false>                                    \
  inline void name(const LocalTensor<T>& dstLocal, const LocalTensor<T>& srcLocal, const uint32_t dataSize,          \
                   OPKIT_HERE) {                                                                                     \
    name<T, highPrecision, highPerformance>(dstLocal, srcLocal, ::opkit::high_level::free_space(), dataSize, where); \
  }
OPKIT_GELU_WITHOUT_SPACE(FasterGelu)
OPKIT_GELU_WITHOUT_SPACE(Gelu)
OPKIT_GELU_WITHOUT_SPACE(FasterGeluV2)
#undef OPKIT_GELU_WITHOUT_SPACE

}  // namespace AscendC
