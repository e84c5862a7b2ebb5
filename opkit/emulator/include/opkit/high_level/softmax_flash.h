/// SoftmaxFlash, SoftmaxFlashV2 and SoftmaxFlashV3: the softmax of rows that arrive in pieces. Source: Ascend C API,
/// high-level API, activation functions, SoftMax.
#pragma once

#include "opkit/high_level/softmax.h"

namespace AscendC {

/// Each piece divided by the sum so far; expMax is what earlier results are to be multiplied by.
template <typename T = void, bool isReuseSource = false, bool isBasicBlock = false, typename D, typename U>
inline void SoftmaxFlash(const LocalTensor<D>& dstTensor, const LocalTensor<U>& sumTensor,
                         const LocalTensor<U>& maxTensor, const LocalTensor<D>& srcTensor,
                         const LocalTensor<D>& expMaxTensor, const LocalTensor<U>& inSumTensor,
                         const LocalTensor<U>& inMaxTensor, const LocalTensor<uint8_t>& sharedTmpBuffer,
                         const SoftMaxTiling& tiling, bool isUpdate = false,
                         const SoftMaxShapeInfo& softmaxShapeInfo = {}, OPKIT_HERE) {
  using namespace opkit::high_level;
  const SoftMaxShapeInfo shape = softmax_shape<D>(softmaxShapeInfo, tiling, SOFTMAX_DEFAULT_CFG, where);
  in_softmax_parts<is_in_place<D, false> ? 0 : kSoftmaxMatrices>(
      sharedTmpBuffer, shape, where, [&](const SoftmaxPart& part, const Floats* matrix) {
        const Rows& rows = part.rows;
        const Floats data = rows.template load<false>(srcTensor, shape.srcM, matrix[0]);
        const Floats results = rows.template target<false>(dstTensor, matrix[0]);
        rows.maximum(part.maximum(), data);
        if (isUpdate) part.template update_maximum<false>(inMaxTensor);
        part.exponentials(results, data);
        rows.sum(part.sum(), results);
        if (isUpdate) {
          part.template update_sum<false>(inSumTensor);
          rows.column().div(part.factor(), part.input(), part.sum());
          part.template store<false>(expMaxTensor, part.factor());
        }
        rows.div(results, results, part.sum());
        rows.template store<false>(dstTensor, shape.srcM, results);
        part.template store<false>(maxTensor, part.maximum());
        part.template store<false>(sumTensor, part.sum());
      });
}
template <typename T = void, bool isReuseSource = false, bool isBasicBlock = false, typename D, typename U>
inline void SoftmaxFlash(const LocalTensor<D>& dstTensor, const LocalTensor<U>& sumTensor,
                         const LocalTensor<U>& maxTensor, const LocalTensor<D>& srcTensor,
                         const LocalTensor<D>& expMaxTensor, const LocalTensor<U>& inSumTensor,
                         const LocalTensor<U>& inMaxTensor, const SoftMaxTiling& tiling, bool isUpdate = false,
                         const SoftMaxShapeInfo& softmaxShapeInfo = {}, OPKIT_HERE) {
  SoftmaxFlash<T>(dstTensor, sumTensor, maxTensor, srcTensor, expMaxTensor, inSumTensor, inMaxTensor,
                  opkit::high_level::free_space(), tiling, isUpdate, softmaxShapeInfo, where);
}

}  // namespace AscendC

namespace opkit::high_level {

template <bool is_update, bool is_nz, const AscendC::SoftmaxConfig& config, typename D, typename U, typename ReduceMax>
inline void softmax_flash_v2(const AscendC::LocalTensor<D>& dst, const AscendC::LocalTensor<U>& exp_sum,
                             const AscendC::LocalTensor<U>& max, const AscendC::LocalTensor<D>& src,
                             const AscendC::LocalTensor<D>& exp_max, const AscendC::LocalTensor<U>& in_exp_sum,
                             const AscendC::LocalTensor<U>& in_max, const AscendC::LocalTensor<uint8_t>& space,
                             const AscendC::SoftMaxShapeInfo& shape, Where where, const ReduceMax& store_reduce_max) {
  constexpr bool is_list = config.mode == AscendC::SoftmaxMode::SOFTMAX_OUTPUT_WITHOUT_BRC;
  in_softmax_parts<is_in_place<D, is_nz> ? 0 : kSoftmaxMatrices>(
      space, shape, where, [&](const SoftmaxPart& part, const Floats* matrix) {
        const Rows& rows = part.rows;
        const Floats data = rows.template load<is_nz>(src, shape.srcM, matrix[0]);
        const Floats results = rows.template target<is_nz>(dst, matrix[0]);
        rows.maximum(part.maximum(), data);
        store_reduce_max(part);
        if constexpr (is_update) part.template update_maximum<is_list>(in_max);
        part.exponentials(results, data);
        rows.sum(part.sum(), results);
        if constexpr (is_update) {
          part.template update_sum<is_list>(in_exp_sum);
          part.template store<is_list>(exp_max, part.factor());
        }
        rows.template store<is_nz>(dst, shape.srcM, results);
        part.template store<is_list>(max, part.maximum());
        part.template store<is_list>(exp_sum, part.sum());
      });
}

}  // namespace opkit::high_level

namespace AscendC {

/// Exponentials that are not divided yet, the sum so far, and expMax: what earlier results are to be multiplied by.
template <typename T = void, bool isUpdate = false, bool isReuseSource = false, bool isBasicBlock = false,
          bool isDataFormatNZ = false, const SoftmaxConfig& config = SOFTMAX_DEFAULT_CFG, typename D, typename U>
inline void SoftmaxFlashV2(const LocalTensor<D>& dstTensor, const LocalTensor<U>& expSumTensor,
                           const LocalTensor<U>& maxTensor, const LocalTensor<D>& srcTensor,
                           const LocalTensor<D>& expMaxTensor, const LocalTensor<U>& inExpSumTensor,
                           const LocalTensor<U>& inMaxTensor, const LocalTensor<uint8_t>& sharedTmpBuffer,
                           const SoftMaxTiling& tiling, const SoftMaxShapeInfo& softmaxShapeInfo = {}, OPKIT_HERE) {
  using namespace opkit::high_level;
  const SoftMaxShapeInfo shape = softmax_shape<D>(softmaxShapeInfo, tiling, config, where);
  softmax_flash_v2<isUpdate, isDataFormatNZ, config>(dstTensor, expSumTensor, maxTensor, srcTensor, expMaxTensor,
                                                     inExpSumTensor, inMaxTensor, sharedTmpBuffer, shape, where,
                                                     NoColumns{});
}
template <typename T = void, bool isUpdate = false, bool isReuseSource = false, bool isBasicBlock = false,
          bool isDataFormatNZ = false, const SoftmaxConfig& config = SOFTMAX_DEFAULT_CFG, typename D, typename U>
inline void SoftmaxFlashV2(const LocalTensor<D>& dstTensor, const LocalTensor<U>& expSumTensor,
                           const LocalTensor<U>& maxTensor, const LocalTensor<D>& srcTensor,
                           const LocalTensor<D>& expMaxTensor, const LocalTensor<U>& inExpSumTensor,
                           const LocalTensor<U>& inMaxTensor, const SoftMaxTiling& tiling,
                           const SoftMaxShapeInfo& softmaxShapeInfo = {}, OPKIT_HERE) {
  SoftmaxFlashV2<T, isUpdate, isReuseSource, isBasicBlock, isDataFormatNZ, config>(
      dstTensor, expSumTensor, maxTensor, srcTensor, expMaxTensor, inExpSumTensor, inMaxTensor,
      opkit::high_level::free_space(), tiling, softmaxShapeInfo, where);
}

/// The same with the maxima of this piece alone, if isUpdate; only in the mode of one number a row, as documented.
template <typename T, bool isUpdate = false, bool isReuseSource = false, bool isBasicBlock = false,
          bool isDataFormatNZ = false, const SoftmaxConfig& config = SOFTMAX_DEFAULT_CFG>
inline void SoftmaxFlashV2(const LocalTensor<T>& dstTensor, const LocalTensor<T>& outReduceMax,
                           const LocalTensor<T>& outExpSum, const LocalTensor<T>& outMax,
                           const LocalTensor<T>& srcTensor, const LocalTensor<T>& outExpMax,
                           const LocalTensor<T>& inExpSum, const LocalTensor<T>& inMax,
                           const LocalTensor<uint8_t>& sharedTmpBuffer, const SoftMaxTiling& tiling,
                           const SoftMaxShapeInfo& softmaxShapeInfo = {}, OPKIT_HERE) {
  using namespace opkit::high_level;
  static_assert(config.mode == SoftmaxMode::SOFTMAX_OUTPUT_WITHOUT_BRC,
                "SoftmaxFlashV2 with outReduceMax needs SoftmaxMode::SOFTMAX_OUTPUT_WITHOUT_BRC");
  const SoftMaxShapeInfo shape = softmax_shape<T>(softmaxShapeInfo, tiling, config, where);
  softmax_flash_v2<isUpdate, false, config>(dstTensor, outExpSum, outMax, srcTensor, outExpMax, inExpSum, inMax,
                                            sharedTmpBuffer, shape, where, [&](const SoftmaxPart& part) {
                                              if constexpr (isUpdate) {
                                                part.template store<true>(outReduceMax, part.maximum());
                                              }
                                            });
}
template <typename T, bool isUpdate = false, bool isReuseSource = false, bool isBasicBlock = false,
          bool isDataFormatNZ = false, const SoftmaxConfig& config = SOFTMAX_DEFAULT_CFG>
inline void SoftmaxFlashV2(const LocalTensor<T>& dstTensor, const LocalTensor<T>& outReduceMax,
                           const LocalTensor<T>& outExpSum, const LocalTensor<T>& outMax,
                           const LocalTensor<T>& srcTensor, const LocalTensor<T>& outExpMax,
                           const LocalTensor<T>& inExpSum, const LocalTensor<T>& inMax, const SoftMaxTiling& tiling,
                           const SoftMaxShapeInfo& softmaxShapeInfo = {}, OPKIT_HERE) {
  SoftmaxFlashV2<T, isUpdate, isReuseSource, isBasicBlock, isDataFormatNZ, config>(
      dstTensor, outReduceMax, outExpSum, outMax, srcTensor, outExpMax, inExpSum, inMax,
      opkit::high_level::free_space(), tiling, softmaxShapeInfo, where);
}

/// The shape's tiling, computed by the kernel.
inline constexpr SoftMaxTiling SoftMaxFlashV2TilingFunc(const SoftMaxShapeInfo& shapeInfo, const uint32_t dataTypeSize1,
                                                        const uint32_t dataTypeSize2, const uint32_t localWorkSpaceSize,
                                                        const bool isUpdate = false, const bool isBasicBlock = false,
                                                        const bool isDataFormatNZ = false,
                                                        const bool isFlashOutputBrc = false) {
  (void)dataTypeSize1, (void)localWorkSpaceSize, (void)isUpdate, (void)isBasicBlock, (void)isDataFormatNZ;
  (void)isFlashOutputBrc;
  return opkit::high_level::softmax_tiling<SoftMaxTiling>(shapeInfo.srcM, shapeInfo.srcK, dataTypeSize2);
}
/// The function behind it, of rows and columns, with the work space in elements. Source: ops-transformer
/// flash_attention_score.
inline constexpr SoftMaxTiling SoftMaxFlashV2TilingFuncImpl(
    const uint32_t srcM, const uint32_t srcK, const uint32_t dataTypeSize1, const uint32_t dataTypeSize2,
    const uint32_t localWorkSpaceSize, const bool isUpdate = false, const bool isBasicBlock = false,
    const bool isDataFormatNZ = false, const bool isFlashOutputBrc = false) {
  return SoftMaxFlashV2TilingFunc({srcM, srcK, srcM, srcK}, dataTypeSize1, dataTypeSize2,
                                  localWorkSpaceSize * dataTypeSize2, isUpdate, isBasicBlock, isDataFormatNZ,
                                  isFlashOutputBrc);
}

}  // namespace AscendC

namespace opkit::high_level {

/// The eight means of each row that SoftmaxFlashV3 shifts it by, in a column. The documents define them by these steps:
/// the first 512 elements as 64 sums of blocks, to which every later 64 elements are added; then sums of eight.
inline void local_means(const Rows& rows, const Floats& means, const Floats& data, const Floats& sums) {
  constexpr uint32_t kSums = 64, kFolded = 512;
  for (uint32_t row = 0; row < rows.count; ++row) {
    const Floats line = data[row * rows.width];
    AscendC::BlockReduceSum(sums, line, 8, 64, 1, 1, 8, rows.where);
    Rows::barrier();
    for (uint32_t at = kFolded; at < rows.width; at += kSums) {
      AscendC::Add(sums, sums, line[at], static_cast<int32_t>(kSums), rows.where);
      Rows::barrier();
    }
    AscendC::BlockReduceSum(means[row * kColumnFloats], sums, 1, 64, 1, 1, 8, rows.where);
    Rows::barrier();
  }
  rows.column().mul(means, means, 8.0f / static_cast<float>(rows.width));
}

/// results = data - shift, where each of a row's eight shifts holds for an eighth of it.
inline void shift_eighths(const Rows& rows, const Floats& results, const Floats& data, const Floats& shifts,
                          const Floats& spread) {
  const uint32_t eighth = rows.width / 8;
  for (uint32_t row = 0; row < rows.count; ++row) {
    AscendC::Brcb(spread, shifts[row * kColumnFloats], 1, {1, 8}, rows.where);
    Rows::barrier();
    for (uint32_t i = 0; i < 8; ++i) {
      const uint32_t at = row * rows.width + i * eighth;
      const Rows piece = {0, 1, eighth, eighth, rows.where, rows.list, rows.reduction};
      piece.sub(results[at], data[at], spread[i * kColumnFloats]);
    }
  }
}

}  // namespace opkit::high_level

namespace AscendC {

/// As SoftmaxFlashV2 for rows that are shifted by their means first (PASA).
template <typename T, typename U, bool isUpdate = false, bool isReuseSource = false, bool isBasicBlock = false,
          bool isDataFormatNZ = false, const SoftmaxConfig& config = SOFTMAX_DEFAULT_CFG>
inline void SoftmaxFlashV3(const LocalTensor<T>& dstTensor, const LocalTensor<U>& meanTensor,
                           const LocalTensor<U>& expSumTensor, const LocalTensor<U>& maxTensor,
                           const LocalTensor<T>& srcTensor, const LocalTensor<T>& expMaxTensor,
                           const LocalTensor<U>& inMeanTensor, const LocalTensor<U>& inExpSumTensor,
                           const LocalTensor<U>& inMaxTensor, const LocalTensor<uint8_t>& sharedTmpBuffer,
                           const SoftMaxTiling& tiling, const SoftMaxParams& params, OPKIT_HERE) {
  using namespace opkit::high_level;
  static_assert(std::is_same_v<T, half> && std::is_same_v<U, float>, "SoftmaxFlashV3 takes half, and float columns");
  (void)tiling;
  if (params.srcK < 512 || params.srcK % 64 != 0 || params.splitMeanCnt != 8 || params.oriSrcK != params.srcK) {
    opkit::illegal_operand(
        "SoftmaxFlashV3: rows have at least 512 elements, a multiple of 64 without padding, and splitMeanCnt is 8",
        where);
  }
  const float scale = params.alpha / (1.0f - params.alpha);
  const auto loops = static_cast<float>(params.loopCnt);
  in_rows<kSoftmaxV3Matrices, kSoftmaxV3Columns>(
      sharedTmpBuffer, params.srcM, params.srcK, params.srcK, where,
      [&](const Rows& rows, const Floats* matrix, const Floats* column) {
        const SoftmaxPart part = {rows, column};
        const Floats &local = column[5], &row_mean = column[6], &mean = column[7], &shift = column[8];
        const FloatSteps each = rows.column();
        const Floats data = rows.template load<false>(srcTensor, params.srcM, matrix[0]);
        local_means(rows, local, data, matrix[1]);
        const Rows eights = {0, rows.count, kColumnFloats, kColumnFloats, where, rows.list, rows.reduction};
        eights.sum(row_mean, local);
        each.mul(row_mean, row_mean, 0.125f);
        each.sub(local, row_mean, local);
        each.mul(local, local, scale);
        shift_eighths(rows, data, data, local, matrix[1]);
        each.add(mean, row_mean, 0.0f);
        if constexpr (isUpdate) {
          rows.template load_column<false>(part.input(), inMeanTensor);
          each.mul(mean, part.input(), loops - 1.0f);
          each.add(mean, mean, row_mean);
          each.mul(mean, mean, 1.0f / loops);
        }
        each.sub(shift, row_mean, mean);
        each.mul(shift, shift, scale);
        rows.maximum(part.maximum(), data);
        each.add(part.maximum(), part.maximum(), shift);
        if constexpr (isUpdate) {
          // What the old maximum is beside the new mean: in `local`, which is no longer needed.
          each.sub(local, part.input(), mean);
          each.mul(local, local, scale);
          rows.template load_column<false>(part.input(), inMaxTensor);
          each.add(local, local, part.input());
          each.max(part.maximum(), part.maximum(), local);
          each.sub(part.factor(), local, part.maximum());
          each.exp(part.factor(), part.factor());
        }
        each.sub(shift, part.maximum(), shift);
        rows.sub(data, data, shift);
        rows.all().exp(data, data);
        rows.sum(part.sum(), data);
        if constexpr (isUpdate) {
          part.template update_sum<false>(inExpSumTensor);
          part.template store<false>(expMaxTensor, part.factor());
        }
        rows.template store<false>(dstTensor, params.srcM, data);
        part.template store<false>(meanTensor, mean);
        part.template store<false>(maxTensor, part.maximum());
        part.template store<false>(expSumTensor, part.sum());
      });
}
template <typename T, typename U, bool isUpdate = false, bool isReuseSource = false, bool isBasicBlock = false,
          bool isDataFormatNZ = false, const SoftmaxConfig& config = SOFTMAX_DEFAULT_CFG>
inline void SoftmaxFlashV3(const LocalTensor<T>& dstTensor, const LocalTensor<U>& meanTensor,
                           const LocalTensor<U>& expSumTensor, const LocalTensor<U>& maxTensor,
                           const LocalTensor<T>& srcTensor, const LocalTensor<T>& expMaxTensor,
                           const LocalTensor<U>& inMeanTensor, const LocalTensor<U>& inExpSumTensor,
                           const LocalTensor<U>& inMaxTensor, const SoftMaxTiling& tiling, const SoftMaxParams& params,
                           OPKIT_HERE) {
  SoftmaxFlashV3<T, U, isUpdate>(dstTensor, meanTensor, expSumTensor, maxTensor, srcTensor, expMaxTensor, inMeanTensor,
                                 inExpSumTensor, inMaxTensor, opkit::high_level::free_space(), tiling, params, where);
}

}  // namespace AscendC
