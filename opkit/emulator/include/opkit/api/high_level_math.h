/// Functions of the high-level library that are a few vector instructions each: rounding, logarithms, Sign, Sigmoid,
/// Arange, InitGlobalMemory. Source: Ascend C API, high-level API, mathematical functions, activation functions, index
/// computation; the older names (ArithProgression, InitGlobalMemory) mean Arange and Fill.
///
/// Half is computed in float and rounded once. The space for that is the caller's, or what no InitBuffer has taken;
/// where it is too small for all elements they are computed in parts.
#pragma once

#include "opkit/api/data_copy_convert.h"
#include "opkit/api/pipe.h"
#include "opkit/api/vector.h"

namespace opkit::math {

/// A part begins at a multiple of a repeat, so that its tensors stay aligned.
constexpr uint32_t kPartElements = kBlocksPerRepeat * kBlockBytes / sizeof(float);

inline AscendC::LocalTensor<uint8_t> free_space() {
  AscendC::LocalTensor<uint8_t> space;
  AscendC::PopStackBuffer<uint8_t, AscendC::TPosition::LCM>(space);
  return space;
}

/// Calls `step(dst, src, spare)` on float tensors for each part; `spare` is a tensor of the part's length.
template <typename T, typename Step>
inline void in_float(const AscendC::LocalTensor<T>& dst, const AscendC::LocalTensor<T>& src,
                     const AscendC::LocalTensor<uint8_t>& space, uint32_t count, Where where, const Step& step) {
  using namespace AscendC;
  static_assert(std::is_same_v<T, float> || std::is_same_v<T, half>, "high-level functions take half and float");
  constexpr uint32_t buffers = std::is_same_v<T, half> ? 2 : 1;
  const LocalTensor<float> work = space.template ReinterpretCast<float>();
  const uint32_t part = space.GetSize() / sizeof(float) / buffers / kPartElements * kPartElements;
  if (part == 0) illegal_operand("a high-level function: its temporary space is smaller than one repeat", where);
  for (uint32_t begin = 0; begin < count; begin += part) {
    const uint32_t length = count - begin < part ? count - begin : part;
    if constexpr (std::is_same_v<T, half>) {
      Cast(work, src[begin], RoundMode::CAST_NONE, length, where);
      PipeBarrier<PIPE_V>();
      step(work, work, work[part], length);
      PipeBarrier<PIPE_V>();
      Cast(dst[begin], work, RoundMode::CAST_NONE, length, where);
    } else {
      step(dst[begin], src[begin], work, length);
    }
    PipeBarrier<PIPE_V>();
  }
}

/// Rounds floats to whole ones. A template, so that chips without the cast compile the other functions.
template <typename Float>
inline void round_floats(const AscendC::LocalTensor<Float>& dst, const AscendC::LocalTensor<Float>& src,
                         AscendC::RoundMode mode, uint32_t length, Where where) {
  static_assert(vec::casts(dtype_of<Float>(), dtype_of<Float>()),
                "Floor, Ceil, Trunc and Round are not implemented for this chip: it has no cast from float to float");
  AscendC::Cast(dst, src, mode, length, where);
}

}  // namespace opkit::math

namespace AscendC {

/// The four call forms of an element-wise function: with and without temporary space and count.
#define OPKIT_HIGH_LEVEL(name, ...)                                                                           \
  template <typename T, bool isReuseSource = false>                                                           \
  inline void name(const LocalTensor<T>& dstTensor, const LocalTensor<T>& srcTensor,                          \
                   const LocalTensor<uint8_t>& sharedTmpBuffer, const uint32_t calCount, OPKIT_HERE) {        \
    ::opkit::math::in_float(dstTensor, srcTensor, sharedTmpBuffer, calCount, where,                           \
                            [&](const LocalTensor<float>& dst, const LocalTensor<float>& src,                 \
                                const LocalTensor<float>& spare, uint32_t length) {                           \
                              (void)spare;                                                                    \
                              __VA_ARGS__                                                                     \
                            });                                                                               \
  }                                                                                                           \
  template <typename T, bool isReuseSource = false>                                                           \
  inline void name(const LocalTensor<T>& dstTensor, const LocalTensor<T>& srcTensor,                          \
                   const LocalTensor<uint8_t>& sharedTmpBuffer, OPKIT_HERE) {                                 \
    name<T, isReuseSource>(dstTensor, srcTensor, sharedTmpBuffer, srcTensor.GetSize(), where);                \
  }                                                                                                           \
  template <typename T, bool isReuseSource = false>                                                           \
  inline void name(const LocalTensor<T>& dstTensor, const LocalTensor<T>& srcTensor, const uint32_t calCount, \
                   OPKIT_HERE) {                                                                              \
    name<T, isReuseSource>(dstTensor, srcTensor, ::opkit::math::free_space(), calCount, where);               \
  }                                                                                                           \
  template <typename T, bool isReuseSource = false>                                                           \
  inline void name(const LocalTensor<T>& dstTensor, const LocalTensor<T>& srcTensor, OPKIT_HERE) {            \
    name<T, isReuseSource>(dstTensor, srcTensor, ::opkit::math::free_space(), srcTensor.GetSize(), where);    \
  }

OPKIT_HIGH_LEVEL(Floor, ::opkit::math::round_floats(dst, src, RoundMode::CAST_FLOOR, length, where);)
OPKIT_HIGH_LEVEL(Ceil, ::opkit::math::round_floats(dst, src, RoundMode::CAST_CEIL, length, where);)
OPKIT_HIGH_LEVEL(Trunc, ::opkit::math::round_floats(dst, src, RoundMode::CAST_TRUNC, length, where);)
OPKIT_HIGH_LEVEL(Round, ::opkit::math::round_floats(dst, src, RoundMode::CAST_ROUND, length, where);)

// The smallest float, 2^-149, grows beyond 1 in two steps of 2^100.
OPKIT_HIGH_LEVEL(Sign, constexpr float kGrowth = 0x1p100f; Muls(dst, src, kGrowth, length, where);
                 PipeBarrier<PIPE_V>(); Muls(dst, dst, kGrowth, length, where); PipeBarrier<PIPE_V>();
                 Mins(dst, dst, 1.0f, length, where); PipeBarrier<PIPE_V>(); Maxs(dst, dst, -1.0f, length, where);)

OPKIT_HIGH_LEVEL(Log, Ln(dst, src, length, where);)
OPKIT_HIGH_LEVEL(Log2, Ln(dst, src, length, where); PipeBarrier<PIPE_V>();
                 Muls(dst, dst, 1.44269504088896340736f, length, where);)
OPKIT_HIGH_LEVEL(Log10, Ln(dst, src, length, where); PipeBarrier<PIPE_V>();
                 Muls(dst, dst, 0.43429448190325182765f, length, where);)

// 1 / (1 + exp(-x))
OPKIT_HIGH_LEVEL(Sigmoid, Muls(dst, src, -1.0f, length, where); PipeBarrier<PIPE_V>();
                 ::AscendC::Exp(dst, dst, length, where); PipeBarrier<PIPE_V>(); Adds(dst, dst, 1.0f, length, where);
                 Duplicate(spare, 1.0f, length, where); PipeBarrier<PIPE_V>(); Div(dst, spare, dst, length, where);)
#undef OPKIT_HIGH_LEVEL

/// dst[i] = firstValue + i * diffValue, in as few instructions as its documents say: 8 values, then copies of them.
template <typename T>
inline void Arange(const LocalTensor<T>& dst, const T firstValue, const T diffValue, const int32_t count, OPKIT_HERE) {
  constexpr uint32_t kBlockElements = opkit::kBlockBytes / sizeof(T);
  const uint32_t total = count < 0 ? 0 : static_cast<uint32_t>(count);
  uint32_t done = total < kBlockElements ? total : kBlockElements;
  for (uint32_t i = 0; i < done; ++i) {
    const auto value = static_cast<float>(firstValue) + static_cast<float>(diffValue) * static_cast<float>(i);
    if constexpr (std::is_integral_v<T>) {
      dst.SetValue(i, static_cast<T>(firstValue + diffValue * static_cast<T>(i)), where);
    } else {
      dst.SetValue(i, static_cast<T>(value), where);
    }
  }
  if (done == total) return;
  const auto event = static_cast<event_t>(GetTPipePtr()->FetchEventID(HardEvent::S_V));
  SetFlag<HardEvent::S_V>(event);
  WaitFlag<HardEvent::S_V>(event);
  while (done < total) {
    const uint32_t length = total - done < done ? total - done : done;
    if constexpr (std::is_integral_v<T>) {
      Adds(dst[done], dst, static_cast<T>(diffValue * static_cast<T>(done)), length, where);
    } else {
      Adds(dst[done], dst, static_cast<T>(static_cast<float>(diffValue) * static_cast<float>(done)), length, where);
    }
    PipeBarrier<PIPE_V>();
    done += length;
  }
}

template <typename T>
inline void ArithProgression(const LocalTensor<T>& dst, const T firstValue, const T diffValue, const int32_t count,
                             OPKIT_HERE) {
  Arange(dst, firstValue, diffValue, count, where);
}

template <typename T>
inline void InitGlobalMemory(GlobalTensor<T>& gmWorkspaceAddr, const uint64_t size, const T value, OPKIT_HERE) {
  Fill(gmWorkspaceAddr, size, value, where);
}

}  // namespace AscendC
