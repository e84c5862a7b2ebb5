/// How element-wise functions of the high-level library compute: in float, in parts that fit their temporary space;
/// and the call forms that they have in common.
///
/// Half is computed in float and rounded once. The space for that is the caller's, or what no InitBuffer has taken;
/// where it is too small for all elements they are computed in parts.
#pragma once

#include "opkit/api/pipe.h"
#include "opkit/api/vector.h"

namespace opkit::high_level {

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

}  // namespace opkit::high_level

/// The four call forms of an element-wise function: with and without temporary space and count.
#define OPKIT_HIGH_LEVEL(name, ...)                                                                              \
  template <typename T, bool isReuseSource = false>                                                              \
  inline void name(const LocalTensor<T>& dstTensor, const LocalTensor<T>& srcTensor,                             \
                   const LocalTensor<uint8_t>& sharedTmpBuffer, const uint32_t calCount, OPKIT_HERE) {           \
    ::opkit::high_level::in_float(dstTensor, srcTensor, sharedTmpBuffer, calCount, where,                        \
                                  [&](const LocalTensor<float>& dst, const LocalTensor<float>& src,              \
                                      const LocalTensor<float>& spare, uint32_t length) {                        \
                                    (void)spare;                                                                 \
                                    __VA_ARGS__                                                                  \
                                  });                                                                            \
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
