/// LayerNormGrad, LayerNormGradBeta, WelfordUpdate and WelfordFinalize. Source: Ascend C API, high-level API,
/// normalisation.
#pragma once

#include "opkit/high_level/norm.h"

namespace AscendC {

struct LayerNormGradShapeInfo {
  DataFormat dataFormat = DataFormat::ND;
};

struct WelfordUpdateConfig {
  bool isInplace = false;
};
constexpr WelfordUpdateConfig WFUPDATE_DEFAULT_CFG = {false};

struct WelfordUpdateParam {
  uint32_t rnLength{1};
  uint32_t abLength{0};
  uint32_t abComputeLength{0};
  float nRec{1.0f};
};

struct WelfordFinalizeConfig {
  bool isCorrection = false;
};
constexpr WelfordFinalizeConfig WFFINALIZE_DEFAULT_CFG = {false};

struct WelfordFinalizePara {
  uint32_t rnLength{0};
  uint32_t abLength{0};
  uint32_t headCount{0};
  uint32_t headCountLength{0};
  uint32_t tailCount{0};
  uint32_t tailCountLength{0};
  float abRec{0};
  float rRec{0};
  float rRecWithCorrection{0};
};

/// The gradient of x, and (x - mean) / sqrt(variance + epsilon), by the documented formulas.
template <typename T, bool isReuseSource = false>
inline void LayerNormGrad(const LocalTensor<T>& outputPdX, const LocalTensor<T>& resForGamma,
                          const LocalTensor<T>& inputDy, const LocalTensor<T>& inputX,
                          const LocalTensor<T>& inputVariance, const LocalTensor<T>& inputMean,
                          const LocalTensor<T>& inputGamma, const LocalTensor<uint8_t>& sharedTmpBuffer, T epsilon,
                          LayerNormGradTiling& tiling, const LayerNormGradShapeInfo& shapeInfo = {}, OPKIT_HERE) {
  using namespace opkit::high_level;
  if (shapeInfo.dataFormat != DataFormat::ND) opkit::illegal_operand("LayerNormGrad takes DataFormat::ND", where);
  const NormShape shape = norm_shape(tiling);
  check_shape(shape, where);
  const float share = 1.0f / static_cast<float>(shape.used);
  const LastingSpace<kNormLists, 1> lasting(sharedTmpBuffer, shape.rows, shape.width, where);
  const Floats &means = lasting.list[0], &factors = lasting.list[1];
  const FloatSteps every = {shape.rows, where};
  const Floats gamma = as_floats(inputGamma, shape.used, lasting.vector[0], where);
  every.add(means, as_floats(inputMean, shape.rows, means, where), 0.0f);
  reciprocal_deviation(every, factors, as_floats(inputVariance, shape.rows, factors, where),
                       static_cast<float>(epsilon));
  in_rows<kNormGradMatrices, kNormGradColumns>(
      lasting.rest, shape.rows, shape.width, shape.used, where,
      [&](const Rows& rows, const Floats* matrix, const Floats* column) {
        const Floats &x1 = matrix[2], &x2 = matrix[3], &products = matrix[0];
        const FloatSteps each = rows.column();
        const Floats dy = rows.template load<false>(inputDy, shape.rows, matrix[0]);
        const Floats x = rows.template load<false>(inputX, shape.rows, matrix[1]);
        if (shape.used < shape.width) rows.all().fill(x1, 0.0f);
        rows.mul_all(x1, dy, gamma);
        rows.sub(x2, x, rows.from_list(column[0], means));
        const Floats factor = rows.from_list(column[1], factors);
        const Floats &variance_part = column[2], &mean_part = column[3], &sum = column[4];
        // pd_var = sum(-0.5 x1 x2) factor^3
        rows.all().mul(products, x1, x2);
        rows.sum(variance_part, products);
        for (int i = 0; i < 3; ++i) each.mul(variance_part, variance_part, factor);
        each.mul(variance_part, variance_part, -0.5f);
        // pd_mean = sum(-x1) factor + pd_var / H sum(-2 x2)
        rows.sum(mean_part, x1);
        each.mul(mean_part, mean_part, factor);
        each.mul(mean_part, mean_part, -1.0f);
        rows.sum(sum, x2);
        each.mul(sum, sum, variance_part);
        each.mul(sum, sum, -2.0f * share);
        each.add(mean_part, mean_part, sum);
        each.mul(mean_part, mean_part, share);
        each.mul(variance_part, variance_part, 2.0f * share);
        // pd_x = x1 factor + pd_var 2 / H x2 + pd_mean / H
        rows.mul(x1, x1, factor);
        rows.mul(products, x2, variance_part);
        rows.all().add(x1, x1, products);
        rows.add(x1, x1, mean_part);
        rows.mul(x2, x2, factor);
        const auto store = [&](const LocalTensor<T>& tensor, const Floats& values) {
          from_floats(tensor[rows.first * rows.width], values, rows.count * rows.width, where);
        };
        store(outputPdX, x1);
        store(resForGamma, x2);
      });
}
template <typename T, bool isReuseSource = false>
inline void LayerNormGrad(const LocalTensor<T>& outputPdX, const LocalTensor<T>& resForGamma,
                          const LocalTensor<T>& inputDy, const LocalTensor<T>& inputX,
                          const LocalTensor<T>& inputVariance, const LocalTensor<T>& inputMean,
                          const LocalTensor<T>& inputGamma, T epsilon, LayerNormGradTiling& tiling,
                          const LayerNormGradShapeInfo& shapeInfo = {}, OPKIT_HERE) {
  LayerNormGrad<T, isReuseSource>(outputPdX, resForGamma, inputDy, inputX, inputVariance, inputMean, inputGamma,
                                  opkit::high_level::free_space(), epsilon, tiling, shapeInfo, where);
}

/// Sums over all rows: of dy * resForGamma, and of dy.
template <typename T, bool isReuseSource = false>
inline void LayerNormGradBeta(const LocalTensor<T>& outputPdGamma, const LocalTensor<T>& outputPdBeta,
                              const LocalTensor<T>& resForGamma, const LocalTensor<T>& inputDy,
                              const LocalTensor<uint8_t>& sharedTmpBuffer, const LayerNormGradBetaTiling& tiling,
                              OPKIT_HERE) {
  using namespace opkit::high_level;
  const NormShape shape = norm_shape(tiling);
  check_shape(shape, where);
  const LastingSpace<0, 2> lasting(sharedTmpBuffer, shape.rows, shape.width, where);
  const Floats &gamma = lasting.vector[0], &beta = lasting.vector[1];
  const FloatSteps row_steps = {shape.width, where};
  row_steps.fill(gamma, 0.0f);
  row_steps.fill(beta, 0.0f);
  in_rows<3, 0>(lasting.rest, shape.rows, shape.width, shape.used, where,
                [&](const Rows& rows, const Floats* matrix, const Floats*) {
                  const Floats dy = rows.template load<false>(inputDy, shape.rows, matrix[0]);
                  const Floats factor = rows.template load<false>(resForGamma, shape.rows, matrix[1]);
                  rows.all().mul(matrix[2], dy, factor);
                  for (uint32_t row = 0; row < rows.count; ++row) {
                    row_steps.add(gamma, gamma, matrix[2][row * rows.width]);
                    row_steps.add(beta, beta, dy[row * rows.width]);
                  }
                });
  from_floats(outputPdGamma, gamma, shape.width, where);
  from_floats(outputPdBeta, beta, shape.width, where);
}
template <typename T, bool isReuseSource = false>
inline void LayerNormGradBeta(const LocalTensor<T>& outputPdGamma, const LocalTensor<T>& outputPdBeta,
                              const LocalTensor<T>& resForGamma, const LocalTensor<T>& inputDy,
                              LayerNormGradBetaTiling& tiling, OPKIT_HERE) {
  LayerNormGradBeta<T, isReuseSource>(outputPdGamma, outputPdBeta, resForGamma, inputDy,
                                      opkit::high_level::free_space(), tiling, where);
}

/// One step of Welford's algorithm for each element: mean += (x - mean) / n, variance += (x - old mean) (x - mean).
template <typename T, typename U, bool isReuseSource = false, const WelfordUpdateConfig& config = WFUPDATE_DEFAULT_CFG>
inline void WelfordUpdate(const LocalTensor<U>& outputMean, const LocalTensor<U>& outputVariance,
                          const LocalTensor<U>& inputMean, const LocalTensor<U>& inputVariance,
                          const LocalTensor<T>& inputX, const LocalTensor<uint8_t>& sharedTmpBuffer,
                          const WelfordUpdateParam& para, OPKIT_HERE) {
  using namespace opkit::high_level;
  static_assert(std::is_same_v<U, float>, "WelfordUpdate: means and variances are float");
  if (para.rnLength != 1 || para.abComputeLength == 0) {
    opkit::illegal_operand("WelfordUpdate: rnLength is 1 and abComputeLength is not 0", where);
  }
  if (para.abLength * sizeof(T) % opkit::kBlockBytes != 0) {
    opkit::illegal_operand("WelfordUpdate: abLength is no multiple of 32 bytes", where);
  }
  if (config.isInplace && para.abComputeLength < para.abLength) {
    // Behind what is computed the results are what was given.
    const FloatSteps whole = {para.abLength, where};
    whole.add(outputMean, inputMean, -0.0f);
    whole.add(outputVariance, inputVariance, -0.0f);
  }
  const Floats work = sharedTmpBuffer.template ReinterpretCast<float>();
  const uint32_t part = part_elements<float>(sharedTmpBuffer, kWelfordSpares, para.abComputeLength, where);
  const Floats difference = work, rest = work[part];
  for (uint32_t begin = 0; begin < para.abComputeLength; begin += part) {
    const FloatSteps steps = {para.abComputeLength - begin < part ? para.abComputeLength - begin : part, where};
    const Floats x = as_floats(inputX[begin], steps.length, work[2 * part], where);
    steps.sub(difference, x, inputMean[begin]);
    steps.mul(rest, difference, para.nRec);
    steps.add(outputMean[begin], inputMean[begin], rest);
    steps.sub(rest, x, outputMean[begin]);
    steps.mul(rest, rest, difference);
    steps.add(outputVariance[begin], inputVariance[begin], rest);
  }
}
template <typename T, typename U, bool isReuseSource = false, const WelfordUpdateConfig& config = WFUPDATE_DEFAULT_CFG>
inline void WelfordUpdate(const LocalTensor<U>& outputMean, const LocalTensor<U>& outputVariance,
                          const LocalTensor<U>& inputMean, const LocalTensor<U>& inputVariance,
                          const LocalTensor<T>& inputX, const WelfordUpdateParam& para, OPKIT_HERE) {
  WelfordUpdate<T, U, isReuseSource, config>(outputMean, outputVariance, inputMean, inputVariance, inputX,
                                             opkit::high_level::free_space(), para, where);
}

}  // namespace AscendC

namespace opkit::high_level {

/// The mean and variance of all samples from those of `count` accumulators, each weighted by how many samples it saw.
/// `weigh(steps, dst, src)` multiplies by these weights.
template <typename Weigh>
inline void finalize_welford(const Floats& mean_output, const Floats& variance_output, const Floats& means,
                             const Floats& variances, const AscendC::LocalTensor<uint8_t>& space, uint32_t count,
                             float share, Where where, const Weigh& weigh) {
  const uint32_t padded = round_up(count, kPartElements);
  const Floats work = space.template ReinterpretCast<float>();
  if (count * sizeof(float) % kBlockBytes != 0) {
    illegal_operand("WelfordFinalize: abLength is no multiple of 32 bytes", where);
  }
  if (space.GetSize() < welford_finalize_bytes(count)) {
    illegal_operand("WelfordFinalize: its temporary space is smaller than two rows of abLength and their sums need",
                    where);
  }
  const Floats weighted = work, shifted = work[padded], mean = work[2 * padded];
  const Floats reduction = work[2 * padded + kColumnFloats];
  const FloatSteps steps = {count, where}, one = {1, where}, block = {kColumnFloats, where};
  const auto sum = [&](const Floats& dst, const Floats& values) {
    AscendC::ReduceSum(dst, values, reduction, static_cast<int32_t>(count), where);
    Rows::barrier();
  };
  weigh(steps, weighted, means);
  block.fill(mean, 0.0f);
  sum(mean, weighted);
  block.mul(mean, mean, share);
  one.add(mean_output, mean, 0.0f);
  AscendC::Brcb(weighted, mean, 1, {1, 8}, where);
  Rows::barrier();
  const Rows row = {0, 1, count, count, where, mean, reduction};
  row.sub(shifted, means, weighted);
  steps.mul(shifted, shifted, shifted);
  weigh(steps, weighted, shifted);
  steps.add(weighted, weighted, variances);
  block.fill(mean, 0.0f);
  sum(mean, weighted);
  one.mul(variance_output, mean, share);
}

}  // namespace opkit::high_level

namespace AscendC {

/// Accumulators that have seen headCount or tailCount samples.
template <bool isReuseSource = false, const WelfordFinalizeConfig& config = WFFINALIZE_DEFAULT_CFG>
inline void WelfordFinalize(const LocalTensor<float>& outputMean, const LocalTensor<float>& outputVariance,
                            const LocalTensor<float>& inputMean, const LocalTensor<float>& inputVariance,
                            const LocalTensor<uint8_t>& sharedTmpBuffer, WelfordFinalizePara& para, OPKIT_HERE) {
  using namespace opkit::high_level;
  static_assert(!config.isCorrection, "WelfordFinalize: isCorrection is for another chip");
  if (para.headCountLength + para.tailCountLength != para.abLength) {
    opkit::illegal_operand("WelfordFinalize: headCountLength and tailCountLength do not add up to abLength", where);
  }
  const auto weigh = [&](const FloatSteps&, const Floats& dst, const Floats& src) {
    const FloatSteps whole = {para.abLength, where}, head = {para.headCountLength, where};
    if (para.tailCountLength > 0) whole.mul(dst, src, static_cast<float>(para.tailCount));
    if (para.headCountLength > 0) head.mul(dst, src, static_cast<float>(para.headCount));
  };
  finalize_welford(outputMean, outputVariance, inputMean, inputVariance, sharedTmpBuffer, para.abLength, para.rRec,
                   where, weigh);
}
template <bool isReuseSource = false, const WelfordFinalizeConfig& config = WFFINALIZE_DEFAULT_CFG>
inline void WelfordFinalize(const LocalTensor<float>& outputMean, const LocalTensor<float>& outputVariance,
                            const LocalTensor<float>& inputMean, const LocalTensor<float>& inputVariance,
                            WelfordFinalizePara& para, OPKIT_HERE) {
  WelfordFinalize<isReuseSource, config>(outputMean, outputVariance, inputMean, inputVariance,
                                         opkit::high_level::free_space(), para, where);
}

/// How many samples each accumulator has seen stands in a tensor.
template <bool isReuseSource = false, const WelfordFinalizeConfig& config = WFFINALIZE_DEFAULT_CFG>
inline void WelfordFinalize(const LocalTensor<float>& outputMean, const LocalTensor<float>& outputVariance,
                            const LocalTensor<float>& inputMean, const LocalTensor<float>& inputVariance,
                            const LocalTensor<int32_t>& counts, const LocalTensor<uint8_t>& sharedTmpBuffer,
                            WelfordFinalizePara& para, OPKIT_HERE) {
  using namespace opkit::high_level;
  static_assert(!config.isCorrection, "WelfordFinalize: isCorrection is for another chip");
  const uint32_t bytes = round_up(para.abLength, kColumnFloats) * sizeof(float);
  if (sharedTmpBuffer.GetSize() <= bytes) {
    opkit::illegal_operand("WelfordFinalize: its temporary space is smaller than three rows of abLength", where);
  }
  const Floats weights = sharedTmpBuffer.template ReinterpretCast<float>();
  Cast(weights, counts, RoundMode::CAST_NONE, para.abLength, where);
  Rows::barrier();
  const auto weigh = [&](const FloatSteps& steps, const Floats& dst, const Floats& src) {
    steps.mul(dst, src, weights);
  };
  finalize_welford(outputMean, outputVariance, inputMean, inputVariance, sharedTmpBuffer[bytes], para.abLength,
                   para.rRec, where, weigh);
}
template <bool isReuseSource = false, const WelfordFinalizeConfig& config = WFFINALIZE_DEFAULT_CFG>
inline void WelfordFinalize(const LocalTensor<float>& outputMean, const LocalTensor<float>& outputVariance,
                            const LocalTensor<float>& inputMean, const LocalTensor<float>& inputVariance,
                            const LocalTensor<int32_t>& counts, WelfordFinalizePara& para, OPKIT_HERE) {
  WelfordFinalize<isReuseSource, config>(outputMean, outputVariance, inputMean, inputVariance, counts,
                                         opkit::high_level::free_space(), para, where);
}

}  // namespace AscendC
