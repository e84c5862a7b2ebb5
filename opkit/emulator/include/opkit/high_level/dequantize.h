/// AscendDequant: whole numbers times factors, by column. Source: Ascend C API, high-level API, quantization.
///
/// The product is computed in float and rounded once. Elements behind the first calCount of a row are converted only,
/// as the documents' example shows; they leave those values open.
#pragma once

#include <algorithm>
#include <type_traits>

#include "opkit/high_level/elementwise.h"

namespace AscendC {

enum DeQuantMode : uint8_t { DEQUANT_WITH_SINGLE_ROW, DEQUANT_WITH_MULTI_ROW };

/// `m` rows of `n` elements, of which the first `calCount` count.
struct DequantParams {
  uint32_t m;
  uint32_t n;
  uint32_t calCount;
};

}  // namespace AscendC

namespace opkit::high_level {

/// Factors of columns that lie in UB. uint64_t: the lower half of each is a float, as Fixpipe has them.
template <typename T>
struct ColumnFactors {
  const AscendC::LocalTensor<T>& tensor;
  static constexpr bool kIsConverted = !std::is_same_v<T, float>;

  /// Floats of `count` columns, in `work` where they are not yet.
  AscendC::LocalTensor<float> floats(uint32_t begin, uint32_t count, const AscendC::LocalTensor<float>& work,
                                     Where where) const {
    if constexpr (std::is_same_v<T, float>) {
      return tensor[begin];
    } else if constexpr (std::is_same_v<T, uint64_t>) {
      constexpr uint8_t kEvenElements = 1;
      uint64_t picked = 0;
      AscendC::GatherMask(work, tensor[begin].template ReinterpretCast<float>(), kEvenElements, true, count * 2,
                          AscendC::GatherMaskParams(1, 1, 0, 0), picked, where);
    } else {
      AscendC::Cast(work, tensor[begin], AscendC::RoundMode::CAST_NONE, count, where);
    }
    AscendC::PipeBarrier<PIPE_V>();
    return work;
  }
  void multiply(const AscendC::LocalTensor<float>& row, const AscendC::LocalTensor<float>& floats, uint32_t count,
                Where where) const {
    AscendC::Mul(row, row, floats, count, where);
  }
};

struct OneFactor {
  float value;
  static constexpr bool kIsConverted = false;

  AscendC::LocalTensor<float> floats(uint32_t, uint32_t, const AscendC::LocalTensor<float>& work, Where) const {
    return work;
  }
  void multiply(const AscendC::LocalTensor<float>& row, const AscendC::LocalTensor<float>&, uint32_t count,
                Where where) const {
    AscendC::Muls(row, row, value, count, where);
  }
};

/// Casts `rows` rows of `count` elements, at once where nothing lies between them.
template <typename D, typename S>
inline void cast_rows(const AscendC::LocalTensor<D>& dst, uint32_t dst_row, const AscendC::LocalTensor<S>& src,
                      uint32_t src_row, uint32_t rows, uint32_t count, AscendC::RoundMode mode, Where where) {
  if (rows == 1 || (dst_row == count && src_row == count)) {
    AscendC::Cast(dst, src, mode, rows * count, where);
  } else {
    for (uint32_t row = 0; row < rows; ++row) {
      AscendC::Cast(dst[row * dst_row], src[row * src_row], mode, count, where);
    }
  }
  AscendC::PipeBarrier<PIPE_V>();
}

template <typename D, AscendC::DeQuantMode mode, typename Factors>
inline void dequantize(const AscendC::LocalTensor<D>& dst, const AscendC::LocalTensor<int32_t>& src,
                       const Factors& factors, const AscendC::LocalTensor<uint8_t>& space,
                       AscendC::DequantParams params, Where where) {
  using namespace AscendC;
  constexpr uint32_t kBlockElements = kBlockBytes / sizeof(D);
  constexpr bool kIsInPlace = std::is_same_v<D, float>;
  constexpr uint32_t kAreas = (kIsInPlace ? 0 : 1) + (Factors::kIsConverted ? 1 : 0);
  if (params.n == 0 || params.calCount == 0 || params.calCount > params.n || params.n % 8 != 0) {
    illegal_operand("AscendDequant: n is to be a multiple of 8, and calCount 1 to n", where);
  }
  const bool is_one_row = params.m == 1 && params.calCount % kBlockElements == 0 && params.n % params.calCount == 0;
  if (mode == DEQUANT_WITH_SINGLE_ROW && is_one_row) {
    params = {params.n / params.calCount, params.calCount, params.calCount};
  }
  const uint32_t dst_row = (params.n + kBlockElements - 1) / kBlockElements * kBlockElements;
  const LocalTensor<float> work = space.ReinterpretCast<float>();
  // As many columns at a time as the space holds, and then as many rows.
  uint32_t columns = params.n;
  uint32_t area = 0;
  if constexpr (kAreas > 0) {
    area = space.GetSize() / sizeof(float) / kAreas / kPartElements * kPartElements;
    if (area == 0) illegal_operand("AscendDequant: its temporary space is smaller than one repeat an area", where);
    columns = std::min(columns, area);
  }
  const uint32_t rows_at_once = kIsInPlace ? params.m : std::min(params.m, area / columns);
  for (uint32_t begin = 0; begin < params.n; begin += columns) {
    const uint32_t count = std::min(columns, params.n - begin);
    const uint32_t scaled = params.calCount > begin ? std::min(count, params.calCount - begin) : 0;
    LocalTensor<float> floats;
    if (scaled > 0) floats = factors.floats(begin, scaled, work[kIsInPlace ? 0 : area], where);
    for (uint32_t first = 0; first < params.m; first += rows_at_once) {
      const uint32_t rows = std::min(rows_at_once, params.m - first);
      const LocalTensor<int32_t> from = src[first * params.n + begin];
      const LocalTensor<D> to = dst[first * dst_row + begin];
      const auto scale = [&](const LocalTensor<float>& products, uint32_t row_elements) {
        for (uint32_t row = 0; scaled > 0 && row < rows; ++row) {
          factors.multiply(products[row * row_elements], floats, scaled, where);
        }
        PipeBarrier<PIPE_V>();
      };
      if constexpr (kIsInPlace) {
        cast_rows(to, dst_row, from, params.n, rows, count, RoundMode::CAST_NONE, where);
        scale(to, dst_row);
      } else {
        cast_rows(work, count, from, params.n, rows, count, RoundMode::CAST_NONE, where);
        scale(work, count);
        cast_rows(to, dst_row, work, count, rows, count, RoundMode::CAST_RINT, where);
      }
    }
  }
}

template <typename D, typename Scale, bool is_vector>
constexpr bool dequantizes() {
  if constexpr (std::is_same_v<D, half>) return is_vector && std::is_same_v<Scale, uint64_t>;
  constexpr bool is_float_scale = std::is_same_v<Scale, float> || std::is_same_v<Scale, bfloat16_t>;
  return (std::is_same_v<D, float> || std::is_same_v<D, bfloat16_t>) && is_float_scale;
}

}  // namespace opkit::high_level

namespace AscendC {

/// dst[i][j] = src[i][j] * deqScale[j]
template <typename dstT, typename scaleT, DeQuantMode mode = DeQuantMode::DEQUANT_WITH_SINGLE_ROW>
inline void AscendDequant(const LocalTensor<dstT>& dstTensor, const LocalTensor<int32_t>& srcTensor,
                          const LocalTensor<scaleT>& deqScale, const LocalTensor<uint8_t>& sharedTmpBuffer,
                          DequantParams params, OPKIT_HERE) {
  static_assert(opkit::high_level::dequantizes<dstT, scaleT, true>(),
                "AscendDequant: to half with uint64_t factors, to float or bfloat16_t with float or bfloat16_t ones");
  if (params.calCount > deqScale.GetSize()) {
    opkit::illegal_operand("AscendDequant: calCount is more than deqScale has elements", where);
  }
  opkit::high_level::dequantize<dstT, mode>(dstTensor, srcTensor, opkit::high_level::ColumnFactors<scaleT>{deqScale},
                                            sharedTmpBuffer, params, where);
}
template <typename dstT, typename scaleT, DeQuantMode mode = DeQuantMode::DEQUANT_WITH_SINGLE_ROW>
inline void AscendDequant(const LocalTensor<dstT>& dstTensor, const LocalTensor<int32_t>& srcTensor,
                          const LocalTensor<scaleT>& deqScale, DequantParams params, OPKIT_HERE) {
  AscendDequant<dstT, scaleT, mode>(dstTensor, srcTensor, deqScale, opkit::high_level::free_space(), params, where);
}

/// dst[i][j] = src[i][j] * deqScale
template <typename dstT, typename scaleT, DeQuantMode mode = DeQuantMode::DEQUANT_WITH_SINGLE_ROW>
inline void AscendDequant(const LocalTensor<dstT>& dstTensor, const LocalTensor<int32_t>& srcTensor,
                          const scaleT deqScale, const LocalTensor<uint8_t>& sharedTmpBuffer, DequantParams params,
                          OPKIT_HERE) {
  static_assert(opkit::high_level::dequantizes<dstT, scaleT, false>(),
                "AscendDequant: to float or bfloat16_t with one factor of float or bfloat16_t");
  opkit::high_level::dequantize<dstT, mode>(
      dstTensor, srcTensor, opkit::high_level::OneFactor{static_cast<float>(deqScale)}, sharedTmpBuffer, params, where);
}
template <typename dstT, typename scaleT, DeQuantMode mode = DeQuantMode::DEQUANT_WITH_SINGLE_ROW>
inline void AscendDequant(const LocalTensor<dstT>& dstTensor, const LocalTensor<int32_t>& srcTensor,
                          const scaleT deqScale, DequantParams params, OPKIT_HERE) {
  AscendDequant<dstT, scaleT, mode>(dstTensor, srcTensor, deqScale, opkit::high_level::free_space(), params, where);
}

/// The older forms: rows are as long as deqScale, and calCount counts the elements of all of them.
template <typename dstT, typename scaleT, DeQuantMode mode = DeQuantMode::DEQUANT_WITH_SINGLE_ROW>
inline void AscendDequant(const LocalTensor<dstT>& dstTensor, const LocalTensor<int32_t>& srcTensor,
                          const LocalTensor<scaleT>& deqScale, const LocalTensor<uint8_t>& sharedTmpBuffer,
                          const uint32_t calCount, OPKIT_HERE) {
  const uint32_t n = deqScale.GetSize();
  if (n == 0 || calCount % n != 0) {
    opkit::illegal_operand("AscendDequant: calCount is not a multiple of the elements of deqScale", where);
  }
  AscendDequant<dstT, scaleT, DeQuantMode::DEQUANT_WITH_MULTI_ROW>(dstTensor, srcTensor, deqScale, sharedTmpBuffer,
                                                                   DequantParams{calCount / n, n, n}, where);
}
template <typename dstT, typename scaleT, DeQuantMode mode = DeQuantMode::DEQUANT_WITH_SINGLE_ROW>
inline void AscendDequant(const LocalTensor<dstT>& dstTensor, const LocalTensor<int32_t>& srcTensor,
                          const LocalTensor<scaleT>& deqScale, const LocalTensor<uint8_t>& sharedTmpBuffer,
                          OPKIT_HERE) {
  AscendDequant<dstT, scaleT, mode>(dstTensor, srcTensor, deqScale, sharedTmpBuffer, srcTensor.GetSize(), where);
}
template <typename dstT, typename scaleT, DeQuantMode mode = DeQuantMode::DEQUANT_WITH_SINGLE_ROW>
inline void AscendDequant(const LocalTensor<dstT>& dstTensor, const LocalTensor<int32_t>& srcTensor,
                          const LocalTensor<scaleT>& deqScale, const uint32_t calCount, OPKIT_HERE) {
  AscendDequant<dstT, scaleT, mode>(dstTensor, srcTensor, deqScale, opkit::high_level::free_space(), calCount, where);
}
template <typename dstT, typename scaleT, DeQuantMode mode = DeQuantMode::DEQUANT_WITH_SINGLE_ROW>
inline void AscendDequant(const LocalTensor<dstT>& dstTensor, const LocalTensor<int32_t>& srcTensor,
                          const LocalTensor<scaleT>& deqScale, OPKIT_HERE) {
  AscendDequant<dstT, scaleT, mode>(dstTensor, srcTensor, deqScale, opkit::high_level::free_space(),
                                    srcTensor.GetSize(), where);
}

}  // namespace AscendC
