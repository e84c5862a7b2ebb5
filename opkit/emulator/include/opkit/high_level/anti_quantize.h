/// AscendAntiQuant: dst = scale * (src + offset), from int8_t or int4b_t. Source: Ascend C API, high-level API,
/// quantization; its steps are the documents': in half, or in float for a result in bfloat16_t.
///
/// Groups of rows (columns, when transposed) have a scale and an offset for each column (row) of theirs.
#pragma once

#include <algorithm>
#include <type_traits>

#include "opkit/high_level/conversion_space.h"
#include "opkit/high_level/elementwise.h"

namespace AscendC {

/// Rows and columns of offset and scale; zeros: as their ShapeInfo says.
struct AntiQuantShapeInfo {
  uint32_t offsetHeight{0};
  uint32_t offsetWidth{0};
  uint32_t scaleHeight{0};
  uint32_t scaleWidth{0};
};

}  // namespace AscendC

namespace opkit::high_level {

template <typename D>
using AntiQuantWork = std::conditional_t<std::is_same_v<D, half>, half, float>;

template <typename S, typename D>
class AntiQuantizer {
 public:
  using W = AntiQuantWork<D>;
  static constexpr bool kIsHalf = std::is_same_v<D, half>;
  static_assert(std::is_same_v<S, int8_t> || std::is_same_v<S, AscendC::int4b_t>,
                "AscendAntiQuant takes int8_t and int4b_t on this chip");
  static_assert(std::is_same_v<D, half> || std::is_same_v<D, bfloat16_t>,
                "AscendAntiQuant gives half and bfloat16_t on this chip");

  AntiQuantizer(const AscendC::LocalTensor<D>& dst, const AscendC::LocalTensor<S>& src,
                const AscendC::LocalTensor<uint8_t>& space, Where where)
      : dst_(dst), src_(src), where_(where) {
    area_ = space.GetSize() / anti_quant_areas(kIsHalf) / kRepeatBytes * kRepeatBytes / sizeof(W);
    if (area_ < kAntiQuantAreaBytes / sizeof(W)) {
      illegal_operand("AscendAntiQuant: its temporary space is smaller than GetAscendAntiQuantMaxMinTmpSize says",
                      where);
    }
    const AscendC::LocalTensor<W> work = space.template ReinterpretCast<W>();
    offsets_ = work;
    scales_ = work[area_];
    if constexpr (!kIsHalf) {
      sums_ = work[2 * area_];
      halves_ = work[3 * area_].template ReinterpretCast<half>();
    }
  }

  /// One scale and perhaps one offset.
  void tensor(W scale, W offset, bool has_offset) {
    for (uint32_t begin = 0; begin < src_.GetSize(); begin += area_) {
      const uint32_t count = std::min(area_, src_.GetSize() - begin);
      const AscendC::LocalTensor<W> sums = widen(begin, count);
      if (has_offset) {
        AscendC::Adds(sums, sums, offset, count, where_);
        AscendC::PipeBarrier<PIPE_V>();
      }
      AscendC::Muls(sums, sums, scale, count, where_);
      AscendC::PipeBarrier<PIPE_V>();
      narrow(begin, count);
    }
  }

  /// src is [k, n]; `groups` rows of n scales.
  void by_column(const AscendC::LocalTensor<D>& scales, const AscendC::LocalTensor<D>* offsets, uint32_t groups,
                 uint32_t k, uint32_t n) {
    const uint32_t group_rows = k / groups;
    for (uint32_t group = 0; group < groups; ++group) {
      for (uint32_t begin = 0; begin < n; begin += area_) {
        const uint32_t count = std::min(area_, n - begin);
        const AscendC::LocalTensor<W> scale = convert(scales_, scales, group * n + begin, count);
        AscendC::LocalTensor<W> offset;
        if (offsets != nullptr) offset = convert(offsets_, *offsets, group * n + begin, count);
        AscendC::PipeBarrier<PIPE_V>();
        for (uint32_t row = group * group_rows; row < (group + 1) * group_rows; ++row) {
          const AscendC::LocalTensor<W> sums = widen(row * n + begin, count);
          if (offsets != nullptr) {
            AscendC::Add(sums, sums, offset, count, where_);
            AscendC::PipeBarrier<PIPE_V>();
          }
          AscendC::Mul(sums, sums, scale, count, where_);
          AscendC::PipeBarrier<PIPE_V>();
          narrow(row * n + begin, count);
        }
      }
    }
  }

  /// src is [n, k]; `groups` columns of n scales.
  void by_row(const AscendC::LocalTensor<D>& scales, const AscendC::LocalTensor<D>* offsets, uint32_t groups,
              uint32_t n, uint32_t k) {
    const uint32_t group_columns = k / groups;
    const uint32_t total = n * groups;
    for (uint32_t first = 0; first < total; first += kAntiQuantFactors) {
      const uint32_t factors = std::min(kAntiQuantFactors, total - first);
      spread(scales_, scales, first, factors);
      if (offsets != nullptr) spread(offsets_, *offsets, first, factors);
      AscendC::PipeBarrier<PIPE_V>();
      for (uint32_t factor = 0; factor < factors; ++factor) {
        const uint32_t start = (first + factor) * group_columns;
        for (uint32_t begin = 0; begin < group_columns; begin += area_) {
          const uint32_t count = std::min(area_, group_columns - begin);
          const AscendC::LocalTensor<W> sums = widen(start + begin, count);
          if (offsets != nullptr) with_block<Op::Add>(sums, offsets_[factor * kWorkBlock], count);
          with_block<Op::Mul>(sums, scales_[factor * kWorkBlock], count);
          narrow(start + begin, count);
        }
      }
    }
  }

 private:
  static constexpr uint32_t kWorkBlock = kBlockBytes / sizeof(W);

  /// The elements as numbers to compute with: in dst itself where that is half.
  AscendC::LocalTensor<W> widen(uint32_t begin, uint32_t count) {
    if constexpr (kIsHalf) {
      AscendC::Cast(dst_[begin], src_[begin], AscendC::RoundMode::CAST_NONE, count, where_);
      AscendC::PipeBarrier<PIPE_V>();
      return dst_[begin];
    } else {
      AscendC::Cast(halves_, src_[begin], AscendC::RoundMode::CAST_NONE, count, where_);
      AscendC::PipeBarrier<PIPE_V>();
      AscendC::Cast(sums_, halves_, AscendC::RoundMode::CAST_NONE, count, where_);
      AscendC::PipeBarrier<PIPE_V>();
      return sums_;
    }
  }
  void narrow(uint32_t begin, uint32_t count) {
    if constexpr (!kIsHalf) {
      AscendC::Cast(dst_[begin], sums_, AscendC::RoundMode::CAST_RINT, count, where_);
      AscendC::PipeBarrier<PIPE_V>();
    }
  }
  AscendC::LocalTensor<W> convert(const AscendC::LocalTensor<W>& area, const AscendC::LocalTensor<D>& values,
                                  uint32_t begin, uint32_t count) const {
    if constexpr (kIsHalf) {
      return values[begin];
    } else {
      AscendC::Cast(area, values[begin], AscendC::RoundMode::CAST_NONE, count, where_);
      return area;
    }
  }
  /// A data block for each of `count` values, filled with it.
  void spread(const AscendC::LocalTensor<W>& blocks, const AscendC::LocalTensor<D>& values, uint32_t begin,
              uint32_t count) const {
    using namespace AscendC;
    // Scalars, as eight values a Brcb could read beyond the end.
    const auto to_scalar = static_cast<event_t>(GetTPipePtr()->FetchEventID(HardEvent::V_S));
    SetFlag<HardEvent::V_S>(to_scalar);
    WaitFlag<HardEvent::V_S>(to_scalar);
    for (uint32_t i = 0; i < count; ++i) {
      const D value = values.GetValue(begin + i, where_);
      W number;
      if constexpr (kIsHalf) {
        number = value;
      } else {
        number = static_cast<float>(value);
      }
      Duplicate(blocks[i * kWorkBlock], number, static_cast<int32_t>(kWorkBlock), where_);
    }
  }
  /// Each element of `values` and the one that fills `block`.
  template <Op op>
  void with_block(const AscendC::LocalTensor<W>& values, const AscendC::LocalTensor<W>& block, uint32_t count) const {
    constexpr uint32_t kLanes = kRepeatBytes / sizeof(W);
    for (uint32_t begin = 0; begin < count;) {
      const uint32_t repeats = std::min<uint32_t>((count - begin) / kLanes, UINT8_MAX);
      const uint64_t lanes = repeats > 0 ? kLanes : count - begin;
      const auto repeat = static_cast<uint8_t>(repeats > 0 ? repeats : 1);
      const AscendC::BinaryRepeatParams strides(1, 1, 0, 8, 8, 0);
      if constexpr (op == Op::Add) {
        AscendC::Add(values[begin], values[begin], block, lanes, repeat, strides, where_);
      } else {
        AscendC::Mul(values[begin], values[begin], block, lanes, repeat, strides, where_);
      }
      begin += static_cast<uint32_t>(lanes) * repeat;
    }
    AscendC::PipeBarrier<PIPE_V>();
  }

  AscendC::LocalTensor<D> dst_;
  AscendC::LocalTensor<S> src_;
  AscendC::LocalTensor<W> offsets_;
  AscendC::LocalTensor<W> scales_;
  AscendC::LocalTensor<W> sums_;
  AscendC::LocalTensor<half> halves_;
  Where where_;
  uint32_t area_ = 0;
};

/// How many groups there are: rows of a tensor of scales, columns when it is transposed.
template <bool isTranspose, typename D>
inline uint32_t anti_quant_groups(const AscendC::LocalTensor<D>& values, uint32_t height, uint32_t width) {
  if (height != 0 && width != 0) return isTranspose ? width : height;
  const AscendC::ShapeInfo info = values.GetShapeInfo();
  if (info.shapeDim < 2) return 1;
  return info.shape[isTranspose ? 1 : 0];
}

template <bool isTranspose, typename S, typename D>
inline void anti_quantize(const AscendC::LocalTensor<D>& dst, const AscendC::LocalTensor<S>& src,
                          const AscendC::LocalTensor<D>* offset, const AscendC::LocalTensor<D>& scale,
                          const AscendC::LocalTensor<uint8_t>& space, uint32_t k,
                          const AscendC::AntiQuantShapeInfo& shape, Where where) {
  const uint32_t groups = anti_quant_groups<isTranspose>(scale, shape.scaleHeight, shape.scaleWidth);
  if (offset != nullptr && groups != anti_quant_groups<isTranspose>(*offset, shape.offsetHeight, shape.offsetWidth)) {
    illegal_operand("AscendAntiQuant: offset and scale have different shapes", where);
  }
  if (k == 0 || src.GetSize() % k != 0 || groups == 0 || k % groups != 0) {
    illegal_operand("AscendAntiQuant: src is not k by n, or k not a multiple of the groups of scale", where);
  }
  AntiQuantizer<S, D> run(dst, src, space, where);
  if constexpr (isTranspose) {
    run.by_row(scale, offset, groups, src.GetSize() / k, k);
  } else {
    run.by_column(scale, offset, groups, k, src.GetSize() / k);
  }
}

template <typename S, typename D>
inline void anti_quantize_tensor(const AscendC::LocalTensor<D>& dst, const AscendC::LocalTensor<S>& src, D offset,
                                 bool has_offset, D scale, const AscendC::LocalTensor<uint8_t>& space, Where where) {
  using W = AntiQuantWork<D>;
  const auto number = [](D value) {
    if constexpr (std::is_same_v<D, half>)
      return value;
    else
      return static_cast<W>(static_cast<float>(value));
  };
  AntiQuantizer<S, D>(dst, src, space, where).tensor(number(scale), number(offset), has_offset);
}

}  // namespace opkit::high_level

namespace AscendC {

/// A scale and an offset for each channel: column, or row when transposed.
template <typename InputDataType, typename OutputDataType, bool isTranspose>
inline void AscendAntiQuant(const LocalTensor<OutputDataType>& dst, const LocalTensor<InputDataType>& src,
                            const LocalTensor<OutputDataType>& offset, const LocalTensor<OutputDataType>& scale,
                            const LocalTensor<uint8_t>& sharedTmpBuffer, const uint32_t k,
                            const AntiQuantShapeInfo& shapeInfo = {}, OPKIT_HERE) {
  opkit::high_level::anti_quantize<isTranspose>(dst, src, &offset, scale, sharedTmpBuffer, k, shapeInfo, where);
}
template <typename InputDataType, typename OutputDataType, bool isTranspose>
inline void AscendAntiQuant(const LocalTensor<OutputDataType>& dst, const LocalTensor<InputDataType>& src,
                            const LocalTensor<OutputDataType>& offset, const LocalTensor<OutputDataType>& scale,
                            const uint32_t k, const AntiQuantShapeInfo& shapeInfo = {}, OPKIT_HERE) {
  opkit::high_level::anti_quantize<isTranspose>(dst, src, &offset, scale, opkit::high_level::free_space(), k, shapeInfo,
                                                where);
}

/// A scale for each channel.
template <typename InputDataType, typename OutputDataType, bool isTranspose>
inline void AscendAntiQuant(const LocalTensor<OutputDataType>& dst, const LocalTensor<InputDataType>& src,
                            const LocalTensor<OutputDataType>& scale, const LocalTensor<uint8_t>& sharedTmpBuffer,
                            const uint32_t k, const AntiQuantShapeInfo& shapeInfo = {}, OPKIT_HERE) {
  const LocalTensor<OutputDataType>* no_offset = nullptr;
  opkit::high_level::anti_quantize<isTranspose>(dst, src, no_offset, scale, sharedTmpBuffer, k, shapeInfo, where);
}

/// One scale and one offset.
template <typename InputDataType, typename OutputDataType, bool isTranspose>
inline void AscendAntiQuant(const LocalTensor<OutputDataType>& dst, const LocalTensor<InputDataType>& src,
                            const OutputDataType offset, const OutputDataType scale,
                            const LocalTensor<uint8_t>& sharedTmpBuffer, const uint32_t k,
                            const AntiQuantShapeInfo& shapeInfo = {}, OPKIT_HERE) {
  (void)k, (void)shapeInfo;
  opkit::high_level::anti_quantize_tensor(dst, src, offset, true, scale, sharedTmpBuffer, where);
}
template <typename InputDataType, typename OutputDataType, bool isTranspose>
inline void AscendAntiQuant(const LocalTensor<OutputDataType>& dst, const LocalTensor<InputDataType>& src,
                            const OutputDataType offset, const OutputDataType scale, const uint32_t k,
                            const AntiQuantShapeInfo& shapeInfo = {}, OPKIT_HERE) {
  (void)k, (void)shapeInfo;
  opkit::high_level::anti_quantize_tensor(dst, src, offset, true, scale, opkit::high_level::free_space(), where);
}

/// One scale.
template <typename InputDataType, typename OutputDataType, bool isTranspose>
inline void AscendAntiQuant(const LocalTensor<OutputDataType>& dst, const LocalTensor<InputDataType>& src,
                            const OutputDataType scale, const LocalTensor<uint8_t>& sharedTmpBuffer, const uint32_t k,
                            const AntiQuantShapeInfo& shapeInfo = {}, OPKIT_HERE) {
  (void)k, (void)shapeInfo;
  opkit::high_level::anti_quantize_tensor(dst, src, OutputDataType(), false, scale, sharedTmpBuffer, where);
}

}  // namespace AscendC
