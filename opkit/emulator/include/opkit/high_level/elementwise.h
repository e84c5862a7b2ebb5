/// How element-wise functions of the high-level library compute: in float, in parts that fit their temporary space;
/// and the call forms that they have in common.
///
/// Half and bfloat16 are computed in float and rounded once. The space for that is the caller's, or what no InitBuffer
/// has taken; where it is too small for all elements they are computed in parts. The destination may be the first
/// source, although the documents do not promise it.
#pragma once

#include "opkit/high_level/float_steps.h"
#include "opkit/high_level/spares.h"

namespace opkit::high_level {

inline AscendC::LocalTensor<uint8_t> free_space() {
  AscendC::LocalTensor<uint8_t> space;
  AscendC::PopStackBuffer<uint8_t, AscendC::TPosition::LCM>(space);
  return space;
}

/// Lets the second pipe of `event` go on after the first one: around what the scalar unit reads and writes.
template <AscendC::HardEvent event>
inline void synchronize(Where where) {
  const auto id = static_cast<event_t>(fetch_event(first_pipe(event), second_pipe(event), where));
  AscendC::SetFlag<event>(id, where);
  AscendC::WaitFlag<event>(id, where);
}

/// How many elements of a part fit `space` when each needs `buffers` elements of type T; at the most `count`.
template <typename T>
inline uint32_t part_elements(const AscendC::LocalTensor<uint8_t>& space, uint32_t buffers, uint32_t count,
                              Where where) {
  if (buffers == 0) return count;
  const uint32_t part = space.GetSize() / sizeof(T) / buffers / kPartElements * kPartElements;
  if (part == 0) {
    illegal_operand("a high-level function: its temporary space is smaller than one repeat for each tensor it needs",
                    where);
  }
  return part;
}

template <typename T>
constexpr bool is_narrow_float = std::is_same_v<T, half> || std::is_same_v<T, bfloat16_t>;

/// Calls `step(steps, dst, sources..., spare)` on float tensors for each part; `spare` is an array of `spares` tensors
/// of the part's length.
template <uint32_t spares, typename T, typename Step, typename... Sources>
inline void in_float(const AscendC::LocalTensor<uint8_t>& space, uint32_t count, Where where, const Step& step,
                     const AscendC::LocalTensor<T>& dst, const Sources&... sources) {
  using namespace AscendC;
  static_assert(std::is_same_v<T, float> || is_narrow_float<T>, "high-level functions take half and float");
  constexpr uint32_t converted = is_narrow_float<T> ? sizeof...(sources) : 0;
  constexpr uint32_t buffers = converted + spares;
  const Floats work = space.template ReinterpretCast<float>();
  const uint32_t part = part_elements<float>(space, buffers, count, where);
  Floats buffer[buffers + 1];
  for (uint32_t i = 0; i < buffers; ++i) buffer[i] = work[i * part];
  for (uint32_t begin = 0; begin < count; begin += part) {
    const uint32_t length = count - begin < part ? count - begin : part;
    const FloatSteps steps = {length, where};
    if constexpr (is_narrow_float<T>) {
      uint32_t next = 0;
      (Cast(buffer[next++], sources[begin], RoundMode::CAST_NONE, length, where), ...);
      PipeBarrier<PIPE_V>();
      next = 0;
      // Braces: the order in which a call's arguments are evaluated is open.
      const Floats inputs[] = {((void)sources, buffer[next++])...};
      if constexpr (sizeof...(sources) == 1) step(steps, buffer[0], inputs[0], buffer + converted);
      if constexpr (sizeof...(sources) == 2) step(steps, buffer[0], inputs[0], inputs[1], buffer + converted);
      constexpr RoundMode mode = std::is_same_v<T, half> ? RoundMode::CAST_NONE : RoundMode::CAST_RINT;
      Cast(dst[begin], buffer[0], mode, length, where);
    } else {
      step(steps, dst[begin], sources[begin]..., buffer);
    }
    PipeBarrier<PIPE_V>();
  }
}

}  // namespace opkit::high_level

/// The four call forms of a function of one tensor: with and without temporary space and count. `function` takes
/// FloatSteps, destination, source, and an array of `spares` tensors.
#define OPKIT_ELEMENTWISE(name, function, spares)                                                                \
  template <typename T, bool isReuseSource = false>                                                              \
  inline void name(const LocalTensor<T>& dstTensor, const LocalTensor<T>& srcTensor,                             \
                   const LocalTensor<uint8_t>& sharedTmpBuffer, const uint32_t calCount, OPKIT_HERE) {           \
    using ::opkit::high_level::Floats;                                                                           \
    const auto step = [](const ::opkit::high_level::FloatSteps& steps, const Floats& dst, const Floats& src,     \
                         const Floats* spare) { ::opkit::high_level::function(steps, dst, src, spare); };        \
    ::opkit::high_level::in_float<spares>(sharedTmpBuffer, calCount, where, step, dstTensor, srcTensor);         \
  }                                                                                                              \
  template <typename T, bool isReuseSource = false>                                                              \
  inline void name(const LocalTensor<T>& dstTensor, const LocalTensor<T>& srcTensor,                             \
                   const LocalTensor<uint8_t>& sharedTmpBuffer, OPKIT_HERE) {                                    \
    name<T, isReuseSource>(dstTensor, srcTensor, sharedTmpBuffer, srcTensor.GetSize(), where);                   \
  }                                                                                                              \
  template <typename T, bool isReuseSource = false>                                                              \
  inline void name(const LocalTensor<T>& dstTensor, const LocalTensor<T>& srcTensor, const uint32_t calCount,    \
                   OPKIT_HERE) {                                                                                 \
    name<T, isReuseSource>(dstTensor, srcTensor, ::opkit::high_level::free_space(), calCount, where);            \
  }                                                                                                              \
  template <typename T, bool isReuseSource = false>                                                              \
  inline void name(const LocalTensor<T>& dstTensor, const LocalTensor<T>& srcTensor, OPKIT_HERE) {               \
    name<T, isReuseSource>(dstTensor, srcTensor, ::opkit::high_level::free_space(), srcTensor.GetSize(), where); \
  }

/// The same for a function of two tensors.
#define OPKIT_ELEMENTWISE_BINARY(name, function, spares)                                                               \
  template <typename T, bool isReuseSource = false>                                                                    \
  inline void name(const LocalTensor<T>& dstTensor, const LocalTensor<T>& src0Tensor,                                  \
                   const LocalTensor<T>& src1Tensor, const LocalTensor<uint8_t>& sharedTmpBuffer,                      \
                   const uint32_t calCount, OPKIT_HERE) {                                                              \
    using ::opkit::high_level::Floats;                                                                                 \
    const auto step = [](const ::opkit::high_level::FloatSteps& steps, const Floats& dst, const Floats& src0,          \
                         const Floats& src1,                                                                           \
                         const Floats* spare) { ::opkit::high_level::function(steps, dst, src0, src1, spare); };       \
    ::opkit::high_level::in_float<spares>(sharedTmpBuffer, calCount, where, step, dstTensor, src0Tensor, src1Tensor);  \
  }                                                                                                                    \
  template <typename T, bool isReuseSource = false>                                                                    \
  inline void name(const LocalTensor<T>& dstTensor, const LocalTensor<T>& src0Tensor,                                  \
                   const LocalTensor<T>& src1Tensor, const LocalTensor<uint8_t>& sharedTmpBuffer, OPKIT_HERE) {        \
    name<T, isReuseSource>(dstTensor, src0Tensor, src1Tensor, sharedTmpBuffer, src0Tensor.GetSize(), where);           \
  }                                                                                                                    \
  template <typename T, bool isReuseSource = false>                                                                    \
  inline void name(const LocalTensor<T>& dstTensor, const LocalTensor<T>& src0Tensor,                                  \
                   const LocalTensor<T>& src1Tensor, const uint32_t calCount, OPKIT_HERE) {                            \
    name<T, isReuseSource>(dstTensor, src0Tensor, src1Tensor, ::opkit::high_level::free_space(), calCount, where);     \
  }                                                                                                                    \
  template <typename T, bool isReuseSource = false>                                                                    \
  inline void name(const LocalTensor<T>& dstTensor, const LocalTensor<T>& src0Tensor,                                  \
                   const LocalTensor<T>& src1Tensor, OPKIT_HERE) {                                                     \
    name<T, isReuseSource>(dstTensor, src0Tensor, src1Tensor, ::opkit::high_level::free_space(), src0Tensor.GetSize(), \
                           where);                                                                                     \
  }
