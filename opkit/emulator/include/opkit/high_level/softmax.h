/// SoftMax and its relatives. Source: Ascend C API, high-level API, activation functions, SoftMax and LogSoftMax.
///
/// Maxima and sums come out a data block a row. Half is computed in float and rounded once. Shapes are those of
/// softmaxShapeInfo, or of the tiling where it is left out.
#pragma once

#include "opkit/api/vector_tiling.h"
#include "opkit/high_level/rows.h"
#include "opkit/high_level/softmax_tiling.h"

namespace AscendC {

enum class SoftmaxMode { SOFTMAX_NORMAL = 0, SOFTMAX_OUTPUT_WITHOUT_BRC = 1 };

struct SoftmaxConfig {
  bool isCheckTiling = true;
  uint32_t oriSrcM = 0;
  uint32_t oriSrcK = 0;
  SoftmaxMode mode = SoftmaxMode::SOFTMAX_NORMAL;
};

constexpr SoftmaxConfig SOFTMAX_DEFAULT_CFG = {true, 0, 0, SoftmaxMode::SOFTMAX_NORMAL};

struct SoftMaxShapeInfo {
  uint32_t srcM{0};
  uint32_t srcK{0};
  uint32_t oriSrcM{0};
  uint32_t oriSrcK{0};
};

struct SoftMaxParams {
  uint32_t srcM{0};
  uint32_t srcK{0};
  uint32_t oriSrcM{0};
  uint32_t oriSrcK{0};
  uint32_t loopCnt{1};
  uint32_t splitMeanCnt{8};
  float alpha{0.9375f};
};

}  // namespace AscendC

namespace opkit::high_level {

/// The shape of a source of type T.
template <typename T, typename Tiling>
inline AscendC::SoftMaxShapeInfo softmax_shape(const AscendC::SoftMaxShapeInfo& shape, const Tiling& tiling,
                                               const AscendC::SoftmaxConfig& config, Where where) {
  AscendC::SoftMaxShapeInfo result = shape;
  if (result.srcM == 0 || result.srcK == 0) result = {tiling.srcM, tiling.srcK, tiling.srcM, tiling.srcK};
  if (config.oriSrcM != 0) result.oriSrcM = config.oriSrcM;
  if (config.oriSrcK != 0) result.oriSrcK = config.oriSrcK;
  if (result.oriSrcK == 0 || result.oriSrcK > result.srcK) {
    illegal_operand("SoftMax: oriSrcK is 0 or more than srcK", where);
  }
  if (result.srcK * sizeof(T) % kBlockBytes != 0) {
    illegal_operand("SoftMax: srcK is no multiple of 32 bytes", where);
  }
  return result;
}

/// Everything that the variants of softmax compute for one part of rows.
struct SoftmaxPart {
  const Rows& rows;
  const Floats* column;

  const Floats& maximum() const { return column[0]; }
  const Floats& sum() const { return column[1]; }
  const Floats& factor() const { return column[2]; }
  const Floats& input() const { return column[3]; }
  const Floats& scratch() const { return column[4]; }

  /// results = exp(data - maximum)
  void exponentials(const Floats& results, const Floats& data) const {
    rows.sub(results, data, maximum());
    rows.all().exp(results, results);
  }
  /// Maxima and sums of rows that follow earlier ones: factor = exp(old maximum - maximum), which old sums shrink by.
  template <bool is_list, typename U>
  void update_maximum(const AscendC::LocalTensor<U>& old_maximum) const {
    rows.template load_column<is_list>(input(), old_maximum);
    rows.column().max(maximum(), maximum(), input());
    rows.column().sub(factor(), input(), maximum());
    rows.column().exp(factor(), factor());
  }
  template <bool is_list, typename U>
  void update_sum(const AscendC::LocalTensor<U>& old_sum) const {
    rows.template load_column<is_list>(input(), old_sum);
    rows.column().mul(input(), input(), factor());
    rows.column().add(sum(), sum(), input());
  }
  template <bool is_list, typename U>
  void store(const AscendC::LocalTensor<U>& tensor, const Floats& values) const {
    rows.template store_column<is_list>(tensor, values, scratch());
  }
};

/// Calls `step(part, matrices)` for parts of the rows.
template <uint32_t matrices, typename Step>
inline void in_softmax_parts(const AscendC::LocalTensor<uint8_t>& space, const AscendC::SoftMaxShapeInfo& shape,
                             Where where, const Step& step) {
  in_rows<matrices, kSoftmaxColumns>(
      space, shape.srcM, shape.srcK, shape.oriSrcK, where,
      [&](const Rows& rows, const Floats* matrix, const Floats* column) { step(SoftmaxPart{rows, column}, matrix); });
}

/// What a function does with maxima and sums: none are given, or they are stored.
struct NoColumns {
  void operator()(const SoftmaxPart&) const {}
};

template <bool is_nz, typename T, typename Store>
inline void softmax(const AscendC::LocalTensor<T>& dst, const AscendC::LocalTensor<T>& src,
                    const AscendC::LocalTensor<uint8_t>& space, const AscendC::SoftMaxShapeInfo& shape, Where where,
                    const Store& store_columns, bool takes_logarithm = false) {
  in_softmax_parts<is_in_place<T, is_nz> ? 0 : kSoftmaxMatrices>(
      space, shape, where, [&](const SoftmaxPart& part, const Floats* matrix) {
        const Rows& rows = part.rows;
        const Floats data = rows.template load<is_nz>(src, shape.srcM, matrix[0]);
        const Floats results = rows.template target<is_nz>(dst, matrix[0]);
        rows.maximum(part.maximum(), data);
        part.exponentials(results, data);
        rows.sum(part.sum(), results);
        rows.div(results, results, part.sum());
        if (takes_logarithm) {
          rows.all().ln(results, results);
          rows.all().mul(results, results, 0.43429448190325182765f);
        }
        rows.template store<is_nz>(dst, shape.srcM, results);
        store_columns(part);
      });
}

}  // namespace opkit::high_level

namespace AscendC {

/// dst = exp(src - max) / sum of it, row by row.
template <typename T = void, bool isReuseSource = false, bool isBasicBlock = false, bool isDataFormatNZ = false,
          const SoftmaxConfig& config = SOFTMAX_DEFAULT_CFG, typename D, typename U>
inline void SoftMax(const LocalTensor<D>& dstTensor, const LocalTensor<U>& sumTensor, const LocalTensor<U>& maxTensor,
                    const LocalTensor<D>& srcTensor, const LocalTensor<uint8_t>& sharedTmpBuffer,
                    const SoftMaxTiling& tiling, const SoftMaxShapeInfo& softmaxShapeInfo = {}, OPKIT_HERE) {
  using namespace opkit::high_level;
  const SoftMaxShapeInfo shape = softmax_shape<D>(softmaxShapeInfo, tiling, config, where);
  softmax<isDataFormatNZ>(dstTensor, srcTensor, sharedTmpBuffer, shape, where, [&](const SoftmaxPart& part) {
    part.template store<false>(maxTensor, part.maximum());
    part.template store<false>(sumTensor, part.sum());
  });
}
template <typename T = void, bool isReuseSource = false, bool isBasicBlock = false, bool isDataFormatNZ = false,
          const SoftmaxConfig& config = SOFTMAX_DEFAULT_CFG, typename D, typename U>
inline void SoftMax(const LocalTensor<D>& dstTensor, const LocalTensor<U>& sumTensor, const LocalTensor<U>& maxTensor,
                    const LocalTensor<D>& srcTensor, const SoftMaxTiling& tiling,
                    const SoftMaxShapeInfo& softmaxShapeInfo = {}, OPKIT_HERE) {
  SoftMax<T, isReuseSource, isBasicBlock, isDataFormatNZ, config>(
      dstTensor, sumTensor, maxTensor, srcTensor, opkit::high_level::free_space(), tiling, softmaxShapeInfo, where);
}
template <typename T, bool isReuseSource = false, bool isBasicBlock = false,
          const SoftmaxConfig& config = SOFTMAX_DEFAULT_CFG>
inline void SoftMax(const LocalTensor<T>& dstTensor, const LocalTensor<T>& srcTensor,
                    const LocalTensor<uint8_t>& sharedTmpBuffer, const SoftMaxTiling& tiling,
                    const SoftMaxShapeInfo& softmaxShapeInfo = {}, OPKIT_HERE) {
  using namespace opkit::high_level;
  const SoftMaxShapeInfo shape = softmax_shape<T>(softmaxShapeInfo, tiling, config, where);
  softmax<false>(dstTensor, srcTensor, sharedTmpBuffer, shape, where, NoColumns{});
}
template <typename T, bool isReuseSource = false, bool isBasicBlock = false,
          const SoftmaxConfig& config = SOFTMAX_DEFAULT_CFG>
inline void SoftMax(const LocalTensor<T>& dstTensor, const LocalTensor<T>& srcTensor, const SoftMaxTiling& tiling,
                    const SoftMaxShapeInfo& softmaxShapeInfo = {}, OPKIT_HERE) {
  SoftMax<T, isReuseSource, isBasicBlock, config>(dstTensor, srcTensor, opkit::high_level::free_space(), tiling,
                                                  softmaxShapeInfo, where);
}

/// log10 of the softmax, as documented: not the natural logarithm.
template <typename T, bool isReuseSource = false, bool isDataFormatNZ = false>
inline void LogSoftMax(const LocalTensor<T>& dst, const LocalTensor<T>& sum, const LocalTensor<T>& max,
                       const LocalTensor<T>& src, const LocalTensor<uint8_t>& sharedTmpBuffer,
                       const LogSoftMaxTiling& tiling, const SoftMaxShapeInfo& softmaxShapeInfo = {}, OPKIT_HERE) {
  using namespace opkit::high_level;
  const SoftMaxShapeInfo shape = softmax_shape<T>(softmaxShapeInfo, tiling, SOFTMAX_DEFAULT_CFG, where);
  const auto store_columns = [&](const SoftmaxPart& part) {
    part.template store<false>(max, part.maximum());
    part.template store<false>(sum, part.sum());
  };
  softmax<isDataFormatNZ>(dst, src, sharedTmpBuffer, shape, where, store_columns, true);
}

/// dst = exp(src - max) / sum with maxima and sums that are given.
template <typename T = void, bool isReuseSource = false, bool isBasicBlock = false, bool isDataFormatNZ = false,
          const SoftmaxConfig& config = SOFTMAX_DEFAULT_CFG, typename D, typename U>
inline void SimpleSoftMax(const LocalTensor<D>& dstTensor, const LocalTensor<U>& inSumTensor,
                          const LocalTensor<U>& inMaxTensor, const LocalTensor<D>& srcTensor,
                          const LocalTensor<uint8_t>& sharedTmpBuffer, const SoftMaxTiling& tiling,
                          const SoftMaxShapeInfo& softmaxShapeInfo = {}, OPKIT_HERE) {
  using namespace opkit::high_level;
  const SoftMaxShapeInfo shape = softmax_shape<D>(softmaxShapeInfo, tiling, config, where);
  in_softmax_parts<is_in_place<D, isDataFormatNZ> ? 0 : kSoftmaxMatrices>(
      sharedTmpBuffer, shape, where, [&](const SoftmaxPart& part, const Floats* matrix) {
        const Floats data = part.rows.template load<isDataFormatNZ>(srcTensor, shape.srcM, matrix[0]);
        const Floats results = part.rows.template target<isDataFormatNZ>(dstTensor, matrix[0]);
        part.rows.template load_column<false>(part.maximum(), inMaxTensor);
        part.rows.template load_column<false>(part.sum(), inSumTensor);
        part.exponentials(results, data);
        part.rows.div(results, results, part.sum());
        part.rows.template store<isDataFormatNZ>(dstTensor, shape.srcM, results);
      });
}
template <typename T = void, bool isReuseSource = false, bool isBasicBlock = false, bool isDataFormatNZ = false,
          const SoftmaxConfig& config = SOFTMAX_DEFAULT_CFG, typename D, typename U>
inline void SimpleSoftMax(const LocalTensor<D>& dstTensor, const LocalTensor<U>& inSumTensor,
                          const LocalTensor<U>& inMaxTensor, const LocalTensor<D>& srcTensor,
                          const SoftMaxTiling& tiling, const SoftMaxShapeInfo& softmaxShapeInfo = {}, OPKIT_HERE) {
  SimpleSoftMax<T, isReuseSource, isBasicBlock, isDataFormatNZ, config>(
      dstTensor, inSumTensor, inMaxTensor, srcTensor, opkit::high_level::free_space(), tiling, softmaxShapeInfo, where);
}

/// Sets the rows whose maximum has the bits `from` to `to`; says whether there are such rows. Read and written by the
/// scalar unit.
template <typename T1, typename T2, bool isDataFormatNZ = false, uint8_t stepSizeMode = 0>
inline bool AdjustSoftMaxRes(const LocalTensor<T1>& softMaxRes, const LocalTensor<T2>& maxTensor, const uint32_t from,
                             const T1 to, const SoftMaxShapeInfo& softmaxShapeInfo, OPKIT_HERE) {
  constexpr uint32_t kStep = stepSizeMode != 0 ? 1 : opkit::kBlockBytes / sizeof(T2);
  const uint32_t width = softmaxShapeInfo.srcK, rows = softmaxShapeInfo.srcM;
  opkit::high_level::synchronize<HardEvent::V_S>(where);
  bool found = false;
  for (uint32_t row = 0; row < rows; ++row) {
    const auto bits = static_cast<uint32_t>(opkit::bits_of(maxTensor.GetValue(row * kStep, where)));
    if (bits != from) continue;
    found = true;
    if constexpr (isDataFormatNZ) {
      constexpr uint32_t kWidth = opkit::high_level::kFractalWidth;
      for (uint32_t at = 0; at < width; at += kWidth) {
        Duplicate(softMaxRes[at * rows + row * kWidth], to, kWidth, where);
      }
    } else {
      Duplicate(softMaxRes[row * width], to, static_cast<int32_t>(width), where);
    }
  }
  PipeBarrier<PIPE_V>();
  return found;
}

}  // namespace AscendC
