/// Power of tensors and scalars. Source: Ascend C API, high-level API, mathematical functions, Power.
///
/// Floating powers are exp(y ln |x|), as documented for the default algorithm: a relative error of about |y ln x| units
/// in the last place. Integer powers are products that wrap around; of a negative integer exponent nothing is
/// documented, and the result is meaningless.
#pragma once

#include "opkit/high_level/elementwise.h"

namespace opkit::high_level {

/// Negative bases: minus for odd exponents, NaN for fractions. Exponents beyond 2^22 count as even.
inline void power(const FloatSteps& steps, const Floats& dst, const Floats& base, const Floats& exponent,
                  const Floats* spare) {
  constexpr float kLargest = 0x1.fffffep127f;
  constexpr float kEven = 4194304.0f;
  const Floats &magnitude = spare[0], &is_negative = spare[1], &odd = spare[2], &invalid = spare[3];
  // The limits make 0 * infinity, which would be NaN, 0: x^0 and 1^y are 1.
  steps.abs(magnitude, base);
  steps.ln(magnitude, magnitude);
  steps.clamp(magnitude, magnitude, -kLargest, kLargest);
  steps.clamp(odd, exponent, -kLargest, kLargest);
  steps.mul(magnitude, magnitude, odd);
  steps.exp(magnitude, magnitude);
  steps.negative(is_negative, base);
  // Twice the distance of y / 2 from a whole number: 0 of even y, 1 of odd ones.
  steps.clamp(odd, exponent, -kEven, kEven);
  steps.mul(odd, odd, 0.5f);
  steps.nearest(invalid, odd);
  steps.sub(odd, odd, invalid);
  steps.abs(odd, odd);
  steps.mul(odd, odd, 2.0f);
  steps.mul(odd, odd, is_negative);
  // The root of -odd (1 - odd) is 0 for whole exponents and NaN for others.
  steps.add(invalid, odd, -1.0f);
  steps.mul(invalid, invalid, odd);
  steps.sqrt(invalid, invalid);
  steps.mul(odd, odd, -2.0f);
  steps.add(odd, odd, 1.0f);
  steps.add(odd, odd, invalid);
  steps.mul(dst, magnitude, odd);
}

/// Squares and multiplies, one bit of the exponents at a time; none of the tensors is dst.
template <typename Integers>
inline void integer_power(const Integers& dst, const Integers& base, const Integers& exponent, const Integers* spare,
                          int32_t length, Where where) {
  using namespace AscendC;
  const Integers &square = spare[0], &rest = spare[1], &ones = spare[2], &bit = spare[3], &factor = spare[4];
  Duplicate(dst, 1, length, where);
  Duplicate(ones, 1, length, where);
  Adds(square, base, 0, length, where);
  Adds(rest, exponent, 0, length, where);
  PipeBarrier<PIPE_V>();
  for (int i = 0; i < 31; ++i) {
    And(bit.template ReinterpretCast<int16_t>(), rest.template ReinterpretCast<int16_t>(),
        ones.template ReinterpretCast<int16_t>(), 2 * length, where);
    Adds(factor, square, -1, length, where);
    PipeBarrier<PIPE_V>();
    Mul(factor, factor, bit, length, where);
    PipeBarrier<PIPE_V>();
    Adds(factor, factor, 1, length, where);
    PipeBarrier<PIPE_V>();
    Mul(dst, dst, factor, length, where);
    Mul(square, square, square, length, where);
    ShiftRight(rest, rest, 1, length, where);
    PipeBarrier<PIPE_V>();
  }
}

/// `base` and `exponent` are called with the beginning of a part and its length, and a spare tensor that they may fill;
/// they return the part's tensor.
template <uint32_t scalars, typename Base, typename Exponent>
inline void integer_powers(const AscendC::LocalTensor<int32_t>& dst, const Base& base, const Exponent& exponent,
                           const AscendC::LocalTensor<uint8_t>& space, uint32_t count, Where where) {
  using Integers = AscendC::LocalTensor<int32_t>;
  constexpr uint32_t buffers = kIntegerPowerSpares + scalars;
  const uint32_t part = part_elements<int32_t>(space, buffers, count, where);
  Integers buffer[buffers];
  for (uint32_t i = 0; i < buffers; ++i) buffer[i] = space.template ReinterpretCast<int32_t>()[i * part];
  for (uint32_t begin = 0; begin < count; begin += part) {
    const auto length = static_cast<int32_t>(count - begin < part ? count - begin : part);
    const Integers& filled = buffer[buffers - 1];
    integer_power(dst[begin], base(begin, length, filled), exponent(begin, length, filled), buffer, length, where);
  }
}

}  // namespace opkit::high_level

namespace AscendC {

template <typename T, bool isReuseSource = false>
inline void Power(const LocalTensor<T>& dstTensor, const LocalTensor<T>& src0Tensor, const LocalTensor<T>& src1Tensor,
                  const LocalTensor<uint8_t>& sharedTmpBuffer, uint32_t calCount, OPKIT_HERE) {
  using namespace opkit::high_level;
  if constexpr (std::is_same_v<T, int32_t>) {
    const auto base = [&](uint32_t begin, int32_t, const auto&) { return src0Tensor[begin]; };
    const auto exponent = [&](uint32_t begin, int32_t, const auto&) { return src1Tensor[begin]; };
    integer_powers<0>(dstTensor, base, exponent, sharedTmpBuffer, calCount, where);
  } else {
    const auto step = [](const FloatSteps& steps, const Floats& dst, const Floats& base, const Floats& exponent,
                         const Floats* spare) { power(steps, dst, base, exponent, spare); };
    in_float<kPowerSpares>(sharedTmpBuffer, calCount, where, step, dstTensor, src0Tensor, src1Tensor);
  }
}
template <typename T, bool isReuseSource = false>
inline void Power(const LocalTensor<T>& dstTensor, const LocalTensor<T>& src0Tensor, const T& src1Scalar,
                  const LocalTensor<uint8_t>& sharedTmpBuffer, uint32_t calCount, OPKIT_HERE) {
  using namespace opkit::high_level;
  if constexpr (std::is_same_v<T, int32_t>) {
    const auto base = [&](uint32_t begin, int32_t, const auto&) { return src0Tensor[begin]; };
    const auto exponent = [&](uint32_t, int32_t length, const auto& filled) {
      Duplicate(filled, src1Scalar, length, where);
      PipeBarrier<PIPE_V>();
      return filled;
    };
    integer_powers<1>(dstTensor, base, exponent, sharedTmpBuffer, calCount, where);
  } else {
    const auto scalar = static_cast<float>(src1Scalar);
    const auto step = [scalar](const FloatSteps& steps, const Floats& dst, const Floats& base, const Floats* spare) {
      steps.fill(spare[kPowerSpares], scalar);
      power(steps, dst, base, spare[kPowerSpares], spare);
    };
    in_float<kPowerSpares + 1>(sharedTmpBuffer, calCount, where, step, dstTensor, src0Tensor);
  }
}
template <typename T, bool isReuseSource = false>
inline void Power(const LocalTensor<T>& dstTensor, const T& src0Scalar, const LocalTensor<T>& src1Tensor,
                  const LocalTensor<uint8_t>& sharedTmpBuffer, uint32_t calCount, OPKIT_HERE) {
  using namespace opkit::high_level;
  if constexpr (std::is_same_v<T, int32_t>) {
    const auto base = [&](uint32_t, int32_t length, const auto& filled) {
      Duplicate(filled, src0Scalar, length, where);
      PipeBarrier<PIPE_V>();
      return filled;
    };
    const auto exponent = [&](uint32_t begin, int32_t, const auto&) { return src1Tensor[begin]; };
    integer_powers<1>(dstTensor, base, exponent, sharedTmpBuffer, calCount, where);
  } else {
    const auto scalar = static_cast<float>(src0Scalar);
    const auto step = [scalar](const FloatSteps& steps, const Floats& dst, const Floats& exponent,
                               const Floats* spare) {
      steps.fill(spare[kPowerSpares], scalar);
      power(steps, dst, spare[kPowerSpares], exponent, spare);
    };
    in_float<kPowerSpares + 1>(sharedTmpBuffer, calCount, where, step, dstTensor, src1Tensor);
  }
}

/// The forms without temporary space or count, for each kind of operands; the tensor says how many elements there are.
#define OPKIT_POWER_FORMS(Base, Exponent, tensor)                                                               \
  template <typename T, bool isReuseSource = false>                                                             \
  inline void Power(const LocalTensor<T>& dstTensor, Base src0, Exponent src1,                                  \
                    const LocalTensor<uint8_t>& sharedTmpBuffer, OPKIT_HERE) {                                  \
    Power<T>(dstTensor, src0, src1, sharedTmpBuffer, tensor.GetSize(), where);                                  \
  }                                                                                                             \
  template <typename T, bool isReuseSource = false>                                                             \
  inline void Power(const LocalTensor<T>& dstTensor, Base src0, Exponent src1, uint32_t calCount, OPKIT_HERE) { \
    Power<T>(dstTensor, src0, src1, ::opkit::high_level::free_space(), calCount, where);                        \
  }                                                                                                             \
  template <typename T, bool isReuseSource = false>                                                             \
  inline void Power(const LocalTensor<T>& dstTensor, Base src0, Exponent src1, OPKIT_HERE) {                    \
    Power<T>(dstTensor, src0, src1, ::opkit::high_level::free_space(), tensor.GetSize(), where);                \
  }
OPKIT_POWER_FORMS(const LocalTensor<T>&, const LocalTensor<T>&, src0)
OPKIT_POWER_FORMS(const LocalTensor<T>&, const T&, src0)
OPKIT_POWER_FORMS(const T&, const LocalTensor<T>&, src1)
#undef OPKIT_POWER_FORMS

}  // namespace AscendC
