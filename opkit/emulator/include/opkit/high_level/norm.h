/// LayerNorm, RmsNorm, DeepNorm and Normalize. Source: Ascend C API, high-level API, normalisation.
///
/// Rows are computed in float and rounded once. The shapes are those of the tiling or of the parameters.
#pragma once

#include "opkit/api/vector_tiling.h"
#include "opkit/high_level/reduce.h"
#include "opkit/high_level/rows.h"

namespace AscendC {

struct LayerNormConfig {
  bool isNoBeta = false;
  bool isNoGamma = false;
  bool isOnlyOutput = false;
  bool isOutputRstd = true;
};
constexpr LayerNormConfig LNCFG_NORM = {false, false, false, true};

struct LayerNormPara {
  uint32_t aLength{0};
  uint32_t rLength{0};
  uint32_t rLengthWithPadding{0};
};

struct NormalizeConfig {
  ReducePattern reducePattern = ReducePattern::AR;
  int32_t aLength = -1;
  bool isNoBeta = false;
  bool isNoGamma = false;
  bool isOnlyOutput = false;
};
constexpr NormalizeConfig NLCFG_NORM = {ReducePattern::AR, -1, false, false, false};

struct NormalizePara {
  uint32_t aLength{0};
  uint32_t rLength{0};
  uint32_t rLengthWithPadding{0};
};

}  // namespace AscendC

namespace opkit::high_level {

/// A matrix of `rows` rows of `width` elements, `used` of them data.
struct NormShape {
  uint32_t rows;
  uint32_t width;
  uint32_t used;
};

inline void check_shape(const NormShape& shape, Where where) {
  if (shape.used == 0 || shape.used > shape.width) {
    illegal_operand("a normalisation: rows have no elements, or more than their padded length", where);
  }
}

/// Basic blocks: rows of a multiple of 64 elements up to `most`, eight or a multiple of them.
inline void check_basic_block(const NormShape& shape, uint32_t most, Where where) {
  if (shape.width % 64 != 0 || shape.width > most || shape.rows % 8 != 0) {
    illegal_operand(
        "isBasicBlock: rows have a multiple of 64 elements, at most 2040 in DeepNorm and less than 2048 "
        "in RmsNorm, and their number is a multiple of 8",
        where);
  }
}

/// 1 / sqrt(variance + epsilon), in a column or a list.
inline void reciprocal_deviation(const FloatSteps& steps, const Floats& dst, const Floats& variance, float epsilon) {
  steps.add(dst, variance, epsilon);
  steps.sqrt(dst, dst);
  steps.reciprocal(dst, dst);
}

/// results = centered * factors of rows, times gamma, plus beta.
template <bool has_gamma, bool has_beta>
inline void scale_and_shift(const Rows& rows, const Floats& results, const Floats& centered, const Floats& factor,
                            const Floats& gamma, const Floats& beta) {
  rows.mul(results, centered, factor);
  if constexpr (has_gamma) rows.mul_all(results, results, gamma);
  if constexpr (has_beta) rows.add_all(results, results, beta);
}

/// Means and variances of rows: `load` gives a part's data, which may stand where the results will. The second list of
/// results is the variance or the reciprocal of the deviation.
template <bool has_gamma, bool has_beta, bool gives_reciprocal, typename T, typename U, typename C, typename Load>
inline void normalize_rows(const AscendC::LocalTensor<T>& output, const AscendC::LocalTensor<C>& mean_output,
                           const AscendC::LocalTensor<C>& second_output, const AscendC::LocalTensor<U>& gamma,
                           const AscendC::LocalTensor<U>& beta, const AscendC::LocalTensor<uint8_t>& space,
                           const NormShape& shape, float epsilon, Where where, const Load& load) {
  check_shape(shape, where);
  constexpr bool converts = !std::is_same_v<U, float>;
  const LastingSpace<kNormLists, converts ? kNormVectors : 0> lasting(space, shape.rows, shape.width, where);
  Floats gammas, betas;
  if constexpr (has_gamma) gammas = as_floats(gamma, shape.used, lasting.vector[0], where);
  if constexpr (has_beta) betas = as_floats(beta, shape.used, lasting.vector[converts ? 1 : 0], where);
  constexpr uint32_t matrices = is_in_place<T, false> ? 1 : kNormMatrices;
  in_rows<matrices, kNormColumns>(lasting.rest, shape.rows, shape.width, shape.used, where,
                                  [&](const Rows& rows, const Floats* matrix, const Floats* column) {
                                    const Floats &mean = column[0], &variance = column[1], &factor = column[2],
                                                 &squares = matrix[matrices - 1];
                                    const float share = 1.0f / static_cast<float>(shape.used);
                                    const Floats results = rows.template target<false>(output, matrix[0]);
                                    const Floats data = load(rows, results, matrix);
                                    rows.sum(mean, data);
                                    rows.column().mul(mean, mean, share);
                                    rows.sub(results, data, mean);
                                    rows.all().mul(squares, results, results);
                                    rows.sum(variance, squares);
                                    rows.column().mul(variance, variance, share);
                                    reciprocal_deviation(rows.column(), factor, variance, epsilon);
                                    scale_and_shift<has_gamma, has_beta>(rows, results, results, factor, gammas, betas);
                                    rows.template store<false>(output, shape.rows, results);
                                    rows.to_list(lasting.list[0], mean);
                                    rows.to_list(lasting.list[1], gives_reciprocal ? factor : variance);
                                  });
  from_floats(mean_output, lasting.list[0], shape.rows, where);
  from_floats(second_output, lasting.list[1], shape.rows, where);
}

template <typename Tiling>
inline NormShape norm_shape(const Tiling& tiling) {
  const uint32_t used = tiling.originalHLength == 0 ? tiling.hLength : tiling.originalHLength;
  return {tiling.bLength * tiling.sLength, tiling.hLength, used};
}

}  // namespace opkit::high_level

namespace AscendC {

/// Over the last axis of [B, S, H]; mean and variance are [B, S].
template <typename T, bool isReuseSource = false>
inline void LayerNorm(const LocalTensor<T>& output, const LocalTensor<T>& outputMean,
                      const LocalTensor<T>& outputVariance, const LocalTensor<T>& inputX, const LocalTensor<T>& gamma,
                      const LocalTensor<T>& beta, const LocalTensor<uint8_t>& sharedTmpBuffer, const T epsilon,
                      LayerNormTiling& tiling, OPKIT_HERE) {
  using namespace opkit::high_level;
  const NormShape shape = norm_shape(tiling);
  normalize_rows<true, true, false>(output, outputMean, outputVariance, gamma, beta, sharedTmpBuffer, shape,
                                    static_cast<float>(epsilon), where,
                                    [&](const Rows& rows, const Floats&, const Floats* matrix) {
                                      return rows.template load<false>(inputX, shape.rows, matrix[0]);
                                    });
}
template <typename T, bool isReuseSource = false>
inline void LayerNorm(const LocalTensor<T>& output, const LocalTensor<T>& outputMean,
                      const LocalTensor<T>& outputVariance, const LocalTensor<T>& inputX, const LocalTensor<T>& gamma,
                      const LocalTensor<T>& beta, const T epsilon, LayerNormTiling& tiling, OPKIT_HERE) {
  LayerNorm<T, isReuseSource>(output, outputMean, outputVariance, inputX, gamma, beta, opkit::high_level::free_space(),
                              epsilon, tiling, where);
}

/// Over the last axis of [A, R]; mean, and the reciprocal of the deviation or the variance, are [A].
template <typename U, typename T, bool isReuseSource = false, const LayerNormConfig& config = LNCFG_NORM>
inline void LayerNorm(const LocalTensor<T>& output, const LocalTensor<float>& outputMean,
                      const LocalTensor<float>& outputRstd, const LocalTensor<T>& inputX, const LocalTensor<U>& gamma,
                      const LocalTensor<U>& beta, const float epsilon, const LocalTensor<uint8_t>& sharedTmpBuffer,
                      const LayerNormPara& para, const LayerNormSeparateTiling& tiling, OPKIT_HERE) {
  using namespace opkit::high_level;
  static_assert(!config.isOnlyOutput, "LayerNorm: isOnlyOutput has to be false, as documented");
  (void)tiling;
  const NormShape shape = {para.aLength, para.rLengthWithPadding, para.rLength};
  normalize_rows<!config.isNoGamma, !config.isNoBeta, config.isOutputRstd>(
      output, outputMean, outputRstd, gamma, beta, sharedTmpBuffer, shape, epsilon, where,
      [&](const Rows& rows, const Floats&, const Floats* matrix) {
        return rows.template load<false>(inputX, shape.rows, matrix[0]);
      });
}
template <typename U, typename T, bool isReuseSource = false, const LayerNormConfig& config = LNCFG_NORM>
inline void LayerNorm(const LocalTensor<T>& output, const LocalTensor<float>& outputMean,
                      const LocalTensor<float>& outputRstd, const LocalTensor<T>& inputX, const LocalTensor<U>& gamma,
                      const LocalTensor<U>& beta, const float epsilon, const LayerNormPara& para,
                      const LayerNormSeparateTiling& tiling, OPKIT_HERE) {
  LayerNorm<U, T, isReuseSource, config>(output, outputMean, outputRstd, inputX, gamma, beta, epsilon,
                                         opkit::high_level::free_space(), para, tiling, where);
}

/// LayerNorm of alpha * src + gx. The page calls the third tensor the reciprocal of the deviation; the public sample
/// compares it with the variance, which is what it gets here.
template <typename T, bool isReuseSrc = false, bool isBasicBlock = false>
inline void DeepNorm(const LocalTensor<T>& dstLocal, const LocalTensor<T>& meanLocal, const LocalTensor<T>& rstdLocal,
                     const LocalTensor<T>& srcLocal, const LocalTensor<T>& gxLocal, const LocalTensor<T>& betaLocal,
                     const LocalTensor<T>& gammaLocal, const LocalTensor<uint8_t>& sharedTmpBuffer, const T alpha,
                     const T epsilon, DeepNormTiling& tiling, OPKIT_HERE) {
  using namespace opkit::high_level;
  const NormShape shape = norm_shape(tiling);
  constexpr uint32_t kMostElements = 2040;
  if (shape.width > kMostElements) opkit::illegal_operand("DeepNorm: a row has more than 2040 elements", where);
  if (isBasicBlock) check_basic_block(shape, kMostElements, where);
  const auto factor = static_cast<float>(alpha);
  normalize_rows<true, true, false>(dstLocal, meanLocal, rstdLocal, gammaLocal, betaLocal, sharedTmpBuffer, shape,
                                    static_cast<float>(epsilon), where,
                                    [&](const Rows& rows, const Floats& results, const Floats* matrix) {
                                      const Floats data = rows.template load<false>(srcLocal, shape.rows, matrix[0]);
                                      rows.all().mul(results, data, factor);
                                      const Floats other = rows.template load<false>(gxLocal, shape.rows, matrix[1]);
                                      rows.all().add(results, results, other);
                                      return results;
                                    });
}
template <typename T, bool isReuseSrc = false, bool isBasicBlock = false>
inline void DeepNorm(const LocalTensor<T>& dstLocal, const LocalTensor<T>& meanLocal, const LocalTensor<T>& rstdLocal,
                     const LocalTensor<T>& srcLocal, const LocalTensor<T>& gxLocal, const LocalTensor<T>& betaLocal,
                     const LocalTensor<T>& gammaLocal, const T alpha, const T epsilon, DeepNormTiling& tiling,
                     OPKIT_HERE) {
  DeepNorm<T, isReuseSrc, isBasicBlock>(dstLocal, meanLocal, rstdLocal, srcLocal, gxLocal, betaLocal, gammaLocal,
                                        opkit::high_level::free_space(), alpha, epsilon, tiling, where);
}

/// x / sqrt(mean of x^2 + epsilon) * gamma
template <typename T, bool isBasicBlock = false>
inline void RmsNorm(const LocalTensor<T>& dstLocal, const LocalTensor<T>& srcLocal, const LocalTensor<T>& gammaLocal,
                    const LocalTensor<uint8_t>& sharedTmpBuffer, const T epsilon, const RmsNormTiling& tiling,
                    OPKIT_HERE) {
  using namespace opkit::high_level;
  const NormShape shape = norm_shape(tiling);
  check_shape(shape, where);
  if (isBasicBlock) check_basic_block(shape, 2047, where);
  const uint64_t dst = dstLocal.address(), gammas = gammaLocal.address();
  if (dst < gammas + shape.width * sizeof(T) && gammas < dst + shape.rows * shape.width * sizeof(T)) {
    opkit::illegal_operand("RmsNorm: the result and gamma share memory", where);
  }
  constexpr bool converts = !std::is_same_v<T, float>;
  const LastingSpace<0, converts ? 1 : 0> lasting(sharedTmpBuffer, shape.rows, shape.width, where);
  const Floats gamma = as_floats(gammaLocal, shape.used, lasting.vector[0], where);
  constexpr uint32_t matrices = converts ? 2 : 1;
  in_rows<matrices, 1>(lasting.rest, shape.rows, shape.width, shape.used, where,
                       [&](const Rows& rows, const Floats* matrix, const Floats* column) {
                         const Floats data = rows.template load<false>(srcLocal, shape.rows, matrix[0]);
                         const Floats results = rows.template target<false>(dstLocal, matrix[0]);
                         rows.all().mul(matrix[matrices - 1], data, data);
                         rows.sum(column[0], matrix[matrices - 1]);
                         rows.column().mul(column[0], column[0], 1.0f / static_cast<float>(shape.used));
                         reciprocal_deviation(rows.column(), column[0], column[0], static_cast<float>(epsilon));
                         scale_and_shift<true, false>(rows, results, data, column[0], gamma, gamma);
                         rows.template store<false>(dstLocal, shape.rows, results);
                       });
}
template <typename T, bool isBasicBlock = false>
inline void RmsNorm(const LocalTensor<T>& dstLocal, const LocalTensor<T>& srcLocal, const LocalTensor<T>& gammaLocal,
                    const T epsilon, const RmsNormTiling& tiling, OPKIT_HERE) {
  RmsNorm<T, isBasicBlock>(dstLocal, srcLocal, gammaLocal, opkit::high_level::free_space(), epsilon, tiling, where);
}

/// (x - mean) / sqrt(variance + epsilon) * gamma + beta with means and variances that are given.
template <typename U, typename T, bool isReuseSource = false, const NormalizeConfig& config = NLCFG_NORM>
inline void Normalize(const LocalTensor<T>& output, const LocalTensor<float>& outputRstd,
                      const LocalTensor<float>& inputMean, const LocalTensor<float>& inputVariance,
                      const LocalTensor<T>& inputX, const LocalTensor<U>& gamma, const LocalTensor<U>& beta,
                      const LocalTensor<uint8_t>& sharedTmpBuffer, const float epsilon, const NormalizePara& para,
                      OPKIT_HERE) {
  using namespace opkit::high_level;
  static_assert(config.reducePattern == ReducePattern::AR, "Normalize: the pattern has to be AR, as documented");
  static_assert(!config.isOnlyOutput, "Normalize: isOnlyOutput has to be false, as documented");
  static_assert(sizeof(U) >= sizeof(T), "Normalize: gamma and beta are no less precise than inputX, as documented");
  const NormShape shape = {para.aLength, para.rLengthWithPadding, para.rLength};
  check_shape(shape, where);
  constexpr bool converts = !std::is_same_v<U, float>;
  const LastingSpace<kNormLists, converts ? kNormVectors : 0> lasting(sharedTmpBuffer, shape.rows, shape.width, where);
  Floats gammas, betas;
  if constexpr (!config.isNoGamma) gammas = as_floats(gamma, shape.used, lasting.vector[0], where);
  if constexpr (!config.isNoBeta) betas = as_floats(beta, shape.used, lasting.vector[converts ? 1 : 0], where);
  const FloatSteps every = {shape.rows, where};
  const Floats &means = lasting.list[0], &factors = lasting.list[1];
  every.add(means, inputMean, 0.0f);
  reciprocal_deviation(every, factors, inputVariance, epsilon);
  in_rows<is_in_place<T, false> ? 0 : 1, 2>(
      lasting.rest, shape.rows, shape.width, shape.used, where,
      [&](const Rows& rows, const Floats* matrix, const Floats* column) {
        const Floats data = rows.template load<false>(inputX, shape.rows, matrix[0]);
        const Floats results = rows.template target<false>(output, matrix[0]);
        rows.sub(results, data, rows.from_list(column[0], means));
        scale_and_shift<!config.isNoGamma, !config.isNoBeta>(rows, results, results, rows.from_list(column[1], factors),
                                                             gammas, betas);
        rows.template store<false>(output, shape.rows, results);
      });
  every.add(outputRstd, factors, 0.0f);
}
template <typename U, typename T, bool isReuseSource = false, const NormalizeConfig& config = NLCFG_NORM>
inline void Normalize(const LocalTensor<T>& output, const LocalTensor<float>& outputRstd,
                      const LocalTensor<float>& inputMean, const LocalTensor<float>& inputVariance,
                      const LocalTensor<T>& inputX, const LocalTensor<U>& gamma, const LocalTensor<U>& beta,
                      const float epsilon, const NormalizePara& para, OPKIT_HERE) {
  Normalize<U, T, isReuseSource, config>(output, outputRstd, inputMean, inputVariance, inputX, gamma, beta,
                                         opkit::high_level::free_space(), epsilon, para, where);
}

}  // namespace AscendC
