/// Exp by a Taylor series, Axpy in float, ClampMax, ClampMin, Xor: element-wise functions with call forms of their own.
/// Source: Ascend C API, high-level API, mathematical functions.
#pragma once

#include "opkit/high_level/elementwise.h"
#include "opkit/high_level/math.h"

namespace AscendC {

/// exp(floor(x)) times the series of exp(x - floor(x)) up to its power `taylorExpandLevel`; 0: the instruction.
template <typename T, uint8_t taylorExpandLevel, bool isReuseSource = false>
inline void Exp(const LocalTensor<T>& dstLocal, const LocalTensor<T>& srcLocal,
                const LocalTensor<uint8_t>& sharedTmpBuffer, const uint32_t calCount, OPKIT_HERE) {
  using namespace opkit::high_level;
  const auto step = [](const FloatSteps& steps, const auto& dst, const auto& src, const auto* spare) {
    if constexpr (taylorExpandLevel == 0) {
      steps.exp(dst, src);
    } else {
      const auto &whole = spare[0], &rest = spare[1];
      floor(steps, whole, src, spare);
      steps.sub(rest, src, whole);
      steps.exp(whole, whole);
      steps.fill(dst, 1.0f);
      for (uint32_t power = taylorExpandLevel; power > 0; --power) {
        steps.mul(dst, dst, rest);
        steps.mul(dst, dst, 1.0f / static_cast<float>(power));
        steps.add(dst, dst, 1.0f);
      }
      steps.mul(dst, dst, whole);
    }
  };
  in_float<kExpSpares>(sharedTmpBuffer, calCount, where, step, dstLocal, srcLocal);
}
template <typename T, uint8_t taylorExpandLevel, bool isReuseSource>
inline void Exp(const LocalTensor<T>& dstLocal, const LocalTensor<T>& srcLocal, const uint32_t calCount, OPKIT_HERE) {
  Exp<T, taylorExpandLevel, isReuseSource>(dstLocal, srcLocal, opkit::high_level::free_space(), calCount, where);
}

/// dst += src * scalarValue by a product and a sum, each rounded.
template <typename T, typename U, bool isReuseSource = false>
inline void Axpy(const LocalTensor<T>& dstTensor, const LocalTensor<U>& srcTensor, const U scalarValue,
                 const LocalTensor<uint8_t>& sharedTmpBuffer, const uint32_t calCount, OPKIT_HERE) {
  using namespace opkit::high_level;
  static_assert(std::is_same_v<T, U> || std::is_same_v<T, float>, "Axpy: half to float, or both of one type");
  const auto scalar = static_cast<float>(scalarValue);
  if constexpr (std::is_same_v<T, U>) {
    const auto step = [scalar](const FloatSteps& steps, const Floats& dst, const Floats& old, const Floats& src,
                               const Floats* spare) {
      steps.mul(spare[0], src, scalar);
      steps.add(dst, old, spare[0]);
    };
    in_float<kAxpySpares>(sharedTmpBuffer, calCount, where, step, dstTensor, dstTensor, srcTensor);
  } else {
    const Floats product = sharedTmpBuffer.template ReinterpretCast<float>();
    const uint32_t part = part_elements<float>(sharedTmpBuffer, kAxpySpares, calCount, where);
    for (uint32_t begin = 0; begin < calCount; begin += part) {
      const FloatSteps steps = {calCount - begin < part ? calCount - begin : part, where};
      Cast(product, srcTensor[begin], RoundMode::CAST_NONE, steps.length, where);
      PipeBarrier<PIPE_V>();
      steps.mul(product, product, scalar);
      steps.add(dstTensor[begin], dstTensor[begin], product);
    }
  }
}

#define OPKIT_CLAMP(name, Instruction)                                                                            \
  template <typename T, bool isReuseSource = false>                                                               \
  inline void name(const LocalTensor<T>& dstTensor, const LocalTensor<T>& srcTensor, const LocalTensor<uint8_t>&, \
                   const T scalar, const uint32_t calCount, OPKIT_HERE) {                                         \
    Instruction(dstTensor, srcTensor, scalar, calCount, where);                                                   \
    PipeBarrier<PIPE_V>();                                                                                        \
  }                                                                                                               \
  template <typename T, bool isReuseSource = false>                                                               \
  inline void name(const LocalTensor<T>& dstTensor, const LocalTensor<T>& srcTensor, const T scalar,              \
                   const uint32_t calCount, OPKIT_HERE) {                                                         \
    name<T>(dstTensor, srcTensor, LocalTensor<uint8_t>(), scalar, calCount, where);                               \
  }
OPKIT_CLAMP(ClampMax, Mins)
OPKIT_CLAMP(ClampMin, Maxs)
#undef OPKIT_CLAMP

/// (a | b) & ~(a & b)
template <typename T, bool isReuseSource = false>
inline void Xor(const LocalTensor<T>& dstTensor, const LocalTensor<T>& src0Tensor, const LocalTensor<T>& src1Tensor,
                const LocalTensor<uint8_t>& sharedTmpBuffer, const uint32_t calCount, OPKIT_HERE) {
  const LocalTensor<T> common = sharedTmpBuffer.template ReinterpretCast<T>();
  const uint32_t part = opkit::high_level::part_elements<T>(sharedTmpBuffer, 1, calCount, where);
  for (uint32_t begin = 0; begin < calCount; begin += part) {
    const auto length = static_cast<int32_t>(calCount - begin < part ? calCount - begin : part);
    And(common, src0Tensor[begin], src1Tensor[begin], length, where);
    PipeBarrier<PIPE_V>();
    Not(common, common, length, where);
    Or(dstTensor[begin], src0Tensor[begin], src1Tensor[begin], length, where);
    PipeBarrier<PIPE_V>();
    And(dstTensor[begin], dstTensor[begin], common, length, where);
    PipeBarrier<PIPE_V>();
  }
}
template <typename T, bool isReuseSource = false>
inline void Xor(const LocalTensor<T>& dstTensor, const LocalTensor<T>& src0Tensor, const LocalTensor<T>& src1Tensor,
                const LocalTensor<uint8_t>& sharedTmpBuffer, OPKIT_HERE) {
  if (src0Tensor.GetSize() != src1Tensor.GetSize()) {
    opkit::illegal_operand("Xor: without calCount both sources have the same number of elements", where);
  }
  Xor<T>(dstTensor, src0Tensor, src1Tensor, sharedTmpBuffer, src0Tensor.GetSize(), where);
}
template <typename T, bool isReuseSource = false>
inline void Xor(const LocalTensor<T>& dstTensor, const LocalTensor<T>& src0Tensor, const LocalTensor<T>& src1Tensor,
                const uint32_t calCount, OPKIT_HERE) {
  Xor<T>(dstTensor, src0Tensor, src1Tensor, opkit::high_level::free_space(), calCount, where);
}
template <typename T, bool isReuseSource = false>
inline void Xor(const LocalTensor<T>& dstTensor, const LocalTensor<T>& src0Tensor, const LocalTensor<T>& src1Tensor,
                OPKIT_HERE) {
  Xor<T>(dstTensor, src0Tensor, src1Tensor, opkit::high_level::free_space(), where);
}

}  // namespace AscendC
