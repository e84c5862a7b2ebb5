/// Sigmoid, Silu, Swish and the gated linear units. Source: Ascend C API, high-level API, activation functions.
#pragma once

#include "opkit/high_level/elementwise.h"

namespace opkit::high_level {

/// dst = 1 + exp(scale * x)
inline void one_and_exp(const FloatSteps& steps, const Floats& dst, const Floats& src, float scale) {
  steps.mul(dst, src, scale);
  steps.exp(dst, dst);
  steps.add(dst, dst, 1.0f);
}

inline void sigmoid(const FloatSteps& steps, const Floats& dst, const Floats& src, const Floats*) {
  one_and_exp(steps, dst, src, -1.0f);
  steps.reciprocal(dst, dst);
}

/// x / (1 + exp(-beta x))
inline void swish(const FloatSteps& steps, const Floats& dst, const Floats& src, const Floats* spare, float beta) {
  one_and_exp(steps, spare[0], src, -beta);
  steps.div(dst, src, spare[0]);
}

/// a times the GELU of b, b / (1 + exp(-0.0713548162726 (b^3 + 22.36386 b))).
inline void geglu(const FloatSteps& steps, const Floats& dst, const Floats& a, const Floats& b, const Floats* spare) {
  steps.mul(spare[0], b, b);
  steps.add(spare[0], spare[0], 2.2363860002236e1f);
  steps.mul(spare[0], spare[0], b);
  one_and_exp(steps, spare[0], spare[0], -0.0713548162726f);
  steps.div(spare[0], b, spare[0]);
  steps.mul(dst, a, spare[0]);
}

inline void reglu(const FloatSteps& steps, const Floats& dst, const Floats& a, const Floats& b, const Floats* spare) {
  steps.relu(spare[0], b);
  steps.mul(dst, a, spare[0]);
}

}  // namespace opkit::high_level

namespace AscendC {

template <typename T, bool isReuseSource = false>
inline void Swish(const LocalTensor<T>& dstLocal, const LocalTensor<T>& srcLocal, uint32_t dataSize,
                  const T scalarValue, OPKIT_HERE) {
  using namespace opkit::high_level;
  const auto beta = static_cast<float>(scalarValue);
  const auto step = [beta](const FloatSteps& steps, const Floats& dst, const Floats& src, const Floats* spare) {
    swish(steps, dst, src, spare, beta);
  };
  in_float<kSwishSpares>(free_space(), dataSize, where, step, dstLocal, srcLocal);
}

template <typename T, bool isReuseSource = false>
inline void Silu(const LocalTensor<T>& dstLocal, const LocalTensor<T>& srcLocal, uint32_t dataSize, OPKIT_HERE) {
  Swish<T>(dstLocal, srcLocal, dataSize, static_cast<T>(1.0f), where);
}

/// a times the Swish of b.
template <typename T, bool isReuseSource = false>
inline void SwiGLU(const LocalTensor<T>& dstTensor, const LocalTensor<T>& srcTensor0, const LocalTensor<T>& srcTensor1,
                   const float& scalarValue, const LocalTensor<uint8_t>& sharedTmpBuffer, const uint32_t calCount,
                   OPKIT_HERE) {
  using namespace opkit::high_level;
  const float beta = scalarValue;
  const auto step = [beta](const FloatSteps& steps, const Floats& dst, const Floats& a, const Floats& b,
                           const Floats* spare) {
    swish(steps, spare[1], b, spare, beta);
    steps.mul(dst, a, spare[1]);
  };
  in_float<kSwiGLUSpares>(sharedTmpBuffer, calCount, where, step, dstTensor, srcTensor0, srcTensor1);
}
template <typename T, bool isReuseSource = false>
inline void SwiGLU(const LocalTensor<T>& dstTensor, const LocalTensor<T>& srcTensor0, const LocalTensor<T>& srcTensor1,
                   const float& scalarValue, const LocalTensor<uint8_t>& sharedTmpBuffer, OPKIT_HERE) {
  SwiGLU<T>(dstTensor, srcTensor0, srcTensor1, scalarValue, sharedTmpBuffer, srcTensor0.GetSize(), where);
}
template <typename T, bool isReuseSource = false>
inline void SwiGLU(const LocalTensor<T>& dstTensor, const LocalTensor<T>& srcTensor0, const LocalTensor<T>& srcTensor1,
                   const float& scalarValue, const uint32_t calCount, OPKIT_HERE) {
  SwiGLU<T>(dstTensor, srcTensor0, srcTensor1, scalarValue, opkit::high_level::free_space(), calCount, where);
}
template <typename T, bool isReuseSource = false>
inline void SwiGLU(const LocalTensor<T>& dstTensor, const LocalTensor<T>& srcTensor0, const LocalTensor<T>& srcTensor1,
                   const float& scalarValue, OPKIT_HERE) {
  SwiGLU<T>(dstTensor, srcTensor0, srcTensor1, scalarValue, srcTensor0.GetSize(), where);
}

}  // namespace AscendC
