/// AscendQuant: dst = round(src * scale + offset). Source: Ascend C API, high-level API, quantization; its steps are
/// the documents': float operands become halves, product and sum are rounded to half, and the sum to int8_t, ties to
/// even.
#pragma once

#include <algorithm>
#include <type_traits>

#include "opkit/high_level/conversion_space.h"
#include "opkit/high_level/elementwise.h"

namespace AscendC {

/// Numbers that stand for those of the call where calcCount and workLocalSize, and with a scaleCount scaleCount too,
/// are not 0.
struct AscendQuantConfig {
  uint32_t calcCount = 0;
  uint32_t offsetCount = 0;
  uint32_t scaleCount = 0;
  uint32_t workLocalSize = 0;
};
constexpr AscendQuantConfig ASCEND_QUANT_DEFAULT_CFG = {0, 0, 0, 0};

}  // namespace AscendC

namespace opkit::high_level {

/// Scales, or offsets, of columns: a tensor, or one value.
template <typename T>
struct ColumnValues {
  const AscendC::LocalTensor<T>& tensor;

  /// How many columns there are values for.
  uint32_t most() const { return tensor.GetSize(); }
  AscendC::LocalTensor<half> halves(uint32_t begin, uint32_t count, const AscendC::LocalTensor<half>& work,
                                    Where where) const {
    if constexpr (std::is_same_v<T, half>) {
      return tensor[begin];
    } else {
      AscendC::Cast(work, tensor[begin], AscendC::RoundMode::CAST_NONE, count, where);
      return work;
    }
  }
  void multiply(const AscendC::LocalTensor<half>& dst, const AscendC::LocalTensor<half>& src,
                const AscendC::LocalTensor<half>& halves, uint32_t count, Where where) const {
    AscendC::Mul(dst, src, halves, count, where);
  }
  void add(const AscendC::LocalTensor<half>& dst, const AscendC::LocalTensor<half>& halves, uint32_t count,
           Where where) const {
    AscendC::Add(dst, dst, halves, count, where);
  }
};

struct OneValue {
  half value;

  uint32_t most() const { return UINT32_MAX; }
  AscendC::LocalTensor<half> halves(uint32_t, uint32_t, const AscendC::LocalTensor<half>& work, Where) const {
    return work;
  }
  void multiply(const AscendC::LocalTensor<half>& dst, const AscendC::LocalTensor<half>& src,
                const AscendC::LocalTensor<half>&, uint32_t count, Where where) const {
    AscendC::Muls(dst, src, value, count, where);
  }
  void add(const AscendC::LocalTensor<half>& dst, const AscendC::LocalTensor<half>&, uint32_t count,
           Where where) const {
    AscendC::Adds(dst, dst, value, count, where);
  }
};

/// `count` elements in rows of `columns`; the last may be shorter. dst may begin where src does.
template <typename T, typename Scales, typename Offsets>
inline void quantize(const AscendC::LocalTensor<int8_t>& dst, const AscendC::LocalTensor<T>& src,
                     const AscendC::LocalTensor<uint8_t>& space, const Scales& scales, const Offsets& offsets,
                     uint32_t columns, uint32_t count, Where where) {
  using namespace AscendC;
  static_assert(std::is_same_v<T, half> || std::is_same_v<T, float>, "AscendQuant takes half and float");
  const LocalTensor<half> work = space.template ReinterpretCast<half>();
  const uint32_t area = space.GetSize() / sizeof(half) / kQuantAreas / kQuantPart * kQuantPart;
  if (area == 0)
    illegal_operand("AscendQuant: its temporary space is smaller than GetAscendQuantMaxMinTmpSize says", where);
  for (uint32_t row = 0; row < count; row += columns) {
    const uint32_t row_count = std::min(columns, count - row);
    for (uint32_t begin = 0; begin < row_count; begin += area) {
      const uint32_t length = std::min(area, row_count - begin);
      const LocalTensor<half> scale = scales.halves(begin, length, work[area], where);
      const LocalTensor<half> offset = offsets.halves(begin, length, work[2 * area], where);
      const LocalTensor<T> from = src[row + begin];
      if constexpr (std::is_same_v<T, float>) {
        Cast(work, from, RoundMode::CAST_NONE, length, where);
        PipeBarrier<PIPE_V>();
        scales.multiply(work, work, scale, length, where);
      } else {
        scales.multiply(work, from, scale, length, where);
      }
      PipeBarrier<PIPE_V>();
      offsets.add(work, offset, length, where);
      PipeBarrier<PIPE_V>();
      Cast(dst[row + begin], work, RoundMode::CAST_NONE, length, where);
      PipeBarrier<PIPE_V>();
    }
  }
}

template <typename T, const AscendC::AscendQuantConfig& config>
inline void quantize_tensor(const AscendC::LocalTensor<int8_t>& dst, const AscendC::LocalTensor<T>& src,
                            const AscendC::LocalTensor<uint8_t>& space, float scale, float offset, uint32_t count,
                            Where where) {
  constexpr bool kIsConstant = config.calcCount != 0 && config.workLocalSize != 0;
  const uint32_t elements = kIsConstant ? config.calcCount : count;
  quantize(dst, src, space, OneValue{static_cast<half>(scale)}, OneValue{static_cast<half>(offset)},
           elements == 0 ? 1 : elements, elements, where);
}

template <typename T, const AscendC::AscendQuantConfig& config, typename Offsets>
inline void quantize_channels(const AscendC::LocalTensor<int8_t>& dst, const AscendC::LocalTensor<T>& src,
                              const AscendC::LocalTensor<uint8_t>& space, const AscendC::LocalTensor<T>& scales,
                              const Offsets& offsets, uint32_t scale_count, uint32_t offset_count, uint32_t count,
                              Where where) {
  constexpr bool kIsConstant = config.calcCount != 0 && config.workLocalSize != 0 && config.scaleCount != 0;
  const uint32_t columns = kIsConstant ? config.scaleCount : scale_count;
  if (columns == 0 || columns % 32 != 0 || (!kIsConstant && offset_count != scale_count)) {
    illegal_operand("AscendQuant: scaleCount is to be a multiple of 32, and offsetCount the same", where);
  }
  const uint32_t elements = kIsConstant ? config.calcCount : count;
  if (columns > scales.GetSize() || columns > offsets.most() || elements % columns != 0) {
    illegal_operand(
        "AscendQuant: scaleCount is more than a tensor of scales or offsets has elements, or does not divide calCount",
        where);
  }
  quantize(dst, src, space, ColumnValues<T>{scales}, offsets, columns, elements, where);
}

}  // namespace opkit::high_level

namespace AscendC {

/// One scale and one offset.
template <typename T, bool isReuseSource = false, const AscendQuantConfig& config = ASCEND_QUANT_DEFAULT_CFG>
inline void AscendQuant(const LocalTensor<int8_t>& dstTensor, const LocalTensor<T>& srcTensor,
                        const LocalTensor<uint8_t>& sharedTmpBuffer, const float scale, const float offset,
                        const uint32_t calCount, OPKIT_HERE) {
  opkit::high_level::quantize_tensor<T, config>(dstTensor, srcTensor, sharedTmpBuffer, scale, offset, calCount, where);
}
template <typename T, bool isReuseSource = false, const AscendQuantConfig& config = ASCEND_QUANT_DEFAULT_CFG>
inline void AscendQuant(const LocalTensor<int8_t>& dstTensor, const LocalTensor<T>& srcTensor,
                        const LocalTensor<uint8_t>& sharedTmpBuffer, const float scale, const float offset,
                        OPKIT_HERE) {
  AscendQuant<T, isReuseSource, config>(dstTensor, srcTensor, sharedTmpBuffer, scale, offset, srcTensor.GetSize(),
                                        where);
}
template <typename T, bool isReuseSource = false, const AscendQuantConfig& config = ASCEND_QUANT_DEFAULT_CFG>
inline void AscendQuant(const LocalTensor<int8_t>& dstTensor, const LocalTensor<T>& srcTensor, const float scale,
                        const float offset, const uint32_t calCount, OPKIT_HERE) {
  AscendQuant<T, isReuseSource, config>(dstTensor, srcTensor, opkit::high_level::free_space(), scale, offset, calCount,
                                        where);
}
template <typename T, bool isReuseSource = false, const AscendQuantConfig& config = ASCEND_QUANT_DEFAULT_CFG>
inline void AscendQuant(const LocalTensor<int8_t>& dstTensor, const LocalTensor<T>& srcTensor, const float scale,
                        const float offset, OPKIT_HERE) {
  AscendQuant<T, isReuseSource, config>(dstTensor, srcTensor, opkit::high_level::free_space(), scale, offset,
                                        srcTensor.GetSize(), where);
}

/// A scale for each column, and one offset.
template <typename T, bool isReuseSource = false, const AscendQuantConfig& config = ASCEND_QUANT_DEFAULT_CFG>
inline void AscendQuant(const LocalTensor<int8_t>& dstTensor, const LocalTensor<T>& srcTensor,
                        const LocalTensor<uint8_t>& sharedTmpBuffer, const LocalTensor<T>& scaleTensor, const T offset,
                        const uint32_t scaleCount, const uint32_t calCount, OPKIT_HERE) {
  opkit::high_level::quantize_channels<T, config>(
      dstTensor, srcTensor, sharedTmpBuffer, scaleTensor,
      opkit::high_level::OneValue{static_cast<half>(static_cast<float>(offset))}, scaleCount, scaleCount, calCount,
      where);
}
template <typename T, bool isReuseSource = false, const AscendQuantConfig& config = ASCEND_QUANT_DEFAULT_CFG>
inline void AscendQuant(const LocalTensor<int8_t>& dstTensor, const LocalTensor<T>& srcTensor,
                        const LocalTensor<uint8_t>& sharedTmpBuffer, const LocalTensor<T>& scaleTensor, const T offset,
                        OPKIT_HERE) {
  AscendQuant<T, isReuseSource, config>(dstTensor, srcTensor, sharedTmpBuffer, scaleTensor, offset,
                                        scaleTensor.GetSize(), srcTensor.GetSize(), where);
}
template <typename T, bool isReuseSource = false, const AscendQuantConfig& config = ASCEND_QUANT_DEFAULT_CFG>
inline void AscendQuant(const LocalTensor<int8_t>& dstTensor, const LocalTensor<T>& srcTensor,
                        const LocalTensor<T>& scaleTensor, const T offset, const uint32_t scaleCount,
                        const uint32_t calCount, OPKIT_HERE) {
  AscendQuant<T, isReuseSource, config>(dstTensor, srcTensor, opkit::high_level::free_space(), scaleTensor, offset,
                                        scaleCount, calCount, where);
}
template <typename T, bool isReuseSource = false, const AscendQuantConfig& config = ASCEND_QUANT_DEFAULT_CFG>
inline void AscendQuant(const LocalTensor<int8_t>& dstTensor, const LocalTensor<T>& srcTensor,
                        const LocalTensor<T>& scaleTensor, const T offset, OPKIT_HERE) {
  AscendQuant<T, isReuseSource, config>(dstTensor, srcTensor, opkit::high_level::free_space(), scaleTensor, offset,
                                        where);
}

/// A scale and an offset for each column.
template <typename T, bool isReuseSource = false, const AscendQuantConfig& config = ASCEND_QUANT_DEFAULT_CFG>
inline void AscendQuant(const LocalTensor<int8_t>& dstTensor, const LocalTensor<T>& srcTensor,
                        const LocalTensor<uint8_t>& sharedTmpBuffer, const LocalTensor<T>& scaleTensor,
                        const LocalTensor<T>& offsetTensor, const uint32_t scaleCount, const uint32_t offsetCount,
                        const uint32_t calCount, OPKIT_HERE) {
  opkit::high_level::quantize_channels<T, config>(dstTensor, srcTensor, sharedTmpBuffer, scaleTensor,
                                                  opkit::high_level::ColumnValues<T>{offsetTensor}, scaleCount,
                                                  offsetCount, calCount, where);
}
template <typename T, bool isReuseSource = false, const AscendQuantConfig& config = ASCEND_QUANT_DEFAULT_CFG>
inline void AscendQuant(const LocalTensor<int8_t>& dstTensor, const LocalTensor<T>& srcTensor,
                        const LocalTensor<uint8_t>& sharedTmpBuffer, const LocalTensor<T>& scaleTensor,
                        const LocalTensor<T>& offsetTensor, OPKIT_HERE) {
  AscendQuant<T, isReuseSource, config>(dstTensor, srcTensor, sharedTmpBuffer, scaleTensor, offsetTensor,
                                        scaleTensor.GetSize(), offsetTensor.GetSize(), srcTensor.GetSize(), where);
}
template <typename T, bool isReuseSource = false, const AscendQuantConfig& config = ASCEND_QUANT_DEFAULT_CFG>
inline void AscendQuant(const LocalTensor<int8_t>& dstTensor, const LocalTensor<T>& srcTensor,
                        const LocalTensor<T>& scaleTensor, const LocalTensor<T>& offsetTensor,
                        const uint32_t scaleCount, const uint32_t offsetCount, const uint32_t calCount, OPKIT_HERE) {
  AscendQuant<T, isReuseSource, config>(dstTensor, srcTensor, opkit::high_level::free_space(), scaleTensor,
                                        offsetTensor, scaleCount, offsetCount, calCount, where);
}
template <typename T, bool isReuseSource = false, const AscendQuantConfig& config = ASCEND_QUANT_DEFAULT_CFG>
inline void AscendQuant(const LocalTensor<int8_t>& dstTensor, const LocalTensor<T>& srcTensor,
                        const LocalTensor<T>& scaleTensor, const LocalTensor<T>& offsetTensor, OPKIT_HERE) {
  AscendQuant<T, isReuseSource, config>(dstTensor, srcTensor, opkit::high_level::free_space(), scaleTensor,
                                        offsetTensor, where);
}

}  // namespace AscendC
