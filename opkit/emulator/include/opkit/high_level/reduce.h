/// Sum, Mean, CumSum, and reductions of matrices along either axis. Source: Ascend C API, high-level API, reduction;
/// mathematical functions, CumSum.
#pragma once

#include "opkit/high_level/rows.h"
#include "opkit/high_level/types.h"

namespace AscendC {

/// A pattern's letters are the axes of a matrix: R is reduced. A struct and not a namespace, as no one can tell.
struct Pattern {
  struct Reduce {
    struct AR {};
    struct RA {};
  };
};

struct SumParams {
  uint32_t outter = 1;
  uint32_t inner{0};
  uint32_t n{0};
};
struct MeanParams {
  uint32_t outter = 1;
  uint32_t inner{0};
  uint32_t n{0};
};

enum class CumSumAlgorithm { CUMSUM_ALGORITHM_LINEBYLINE = 0, CUMSUM_ALGORITHM_SKLANSKY = 1 };
struct CumSumConfig {
  bool isLastAxis{true};
  bool isReuseSource{false};
  bool outputLastRow{false};
  CumSumAlgorithm algorithm{CumSumAlgorithm::CUMSUM_ALGORITHM_LINEBYLINE};
};
constexpr CumSumConfig defaultCumSumConfig = {true, false, false, CumSumAlgorithm::CUMSUM_ALGORITHM_LINEBYLINE};
struct CumSumInfo {
  uint32_t outter{0};
  uint32_t inner{0};
};

}  // namespace AscendC

namespace opkit::high_level {

/// Elements of a row of `count` elements that is padded to data blocks.
template <typename T>
constexpr uint32_t padded_row(uint32_t count) {
  return round_up(count, kBlockBytes / sizeof(T));
}

/// Calls `step(dst, row, work)` for every row; `work` is what reductions of one row need.
template <typename T, typename Step>
inline void reduce_rows(const AscendC::LocalTensor<T>& dst, const AscendC::LocalTensor<T>& src,
                        const AscendC::LocalTensor<uint8_t>& space, uint32_t rows, uint32_t width, uint32_t used,
                        Where where, const Step& step) {
  if (space.GetSize() < reduction_bytes(used)) {
    illegal_operand("a high-level reduction: its temporary space is too small for a row", where);
  }
  const auto work = space.template ReinterpretCast<T>();
  for (uint32_t row = 0; row < rows; ++row) {
    step(dst[row], src[row * width], work);
    Rows::barrier();
  }
}

/// What Sum and Mean say of a matrix: rows of whole data blocks, `n` elements of each data.
template <typename T, typename Params>
inline void check_rows(const Params& params, Where where) {
  if (params.inner * sizeof(T) % kBlockBytes != 0 || params.n == 0 || params.n > params.inner) {
    illegal_operand("Sum or Mean: inner is no multiple of 32 bytes, or n not in 1 to inner", where);
  }
}

/// dst = the rows folded into one by `step(dst, dst, row)`.
template <typename T, typename Step>
inline void fold_rows(const AscendC::LocalTensor<T>& dst, const AscendC::LocalTensor<T>& src, uint32_t rows,
                      uint32_t width, uint32_t used, Where where, const Step& step) {
  AscendC::Adds(dst, src, static_cast<T>(0.0f), static_cast<int32_t>(used), where);
  Rows::barrier();
  for (uint32_t row = 1; row < rows; ++row) {
    step(dst, dst, src[row * width]);
    Rows::barrier();
  }
}

/// The product of `count` floats, which `factors`, a copy of them, is changed to compute: folded in halves while more
/// than a block is left, which is spread to a block a factor then.
inline void product(const Floats& dst, const Floats& factors, const Floats& spread, uint32_t count, Where where) {
  uint32_t left = count;
  while (left > kColumnFloats) {
    const uint32_t kept = round_up((left + 1) / 2, kColumnFloats);
    const FloatSteps steps = {left - kept, where};
    steps.mul(factors, factors, factors[kept]);
    left = kept;
  }
  AscendC::Brcb(spread, factors, 1, {1, 8}, where);
  Rows::barrier();
  for (uint32_t half = kColumnFloats / 2; half > 0; half /= 2) {
    const FloatSteps steps = {half * kColumnFloats, where};
    steps.mul(spread, spread, spread[half * kColumnFloats]);
  }
  // A reduction of one number: other instructions write whole data blocks' beginnings only.
  AscendC::WholeReduceMax(dst, spread, 1, 1, 1, 1, 8, AscendC::ReduceOrder::ORDER_ONLY_VALUE, where);
}

template <typename pattern>
constexpr bool reduces_rows = std::is_same_v<pattern, AscendC::Pattern::Reduce::AR>;

}  // namespace opkit::high_level

namespace AscendC {

/// The public templates of a reduction that is one instruction for a row, and one to fold rows. srcShape is the
/// pattern's; the last axis is padded to data blocks.
#define OPKIT_PATTERN_REDUCE(name, is_taken, types, row_step, fold_step, finish)                                    \
  template <class T, class pattern, bool isReuseSource = false>                                                     \
  inline void name(const LocalTensor<T>& dstTensor, const LocalTensor<T>& srcTensor,                                \
                   const LocalTensor<uint8_t>& sharedTmpBuffer, const uint32_t srcShape[], bool srcInnerPad,        \
                   OPKIT_HERE) {                                                                                    \
    using namespace opkit::high_level;                                                                              \
    static_assert(is_taken, #name " of a pattern takes " types " on this chip");                                    \
    static_assert(reduces_rows<pattern> || std::is_same_v<pattern, Pattern::Reduce::RA>,                            \
                  #name ": the pattern is AscendC::Pattern::Reduce::AR or RA");                                     \
    if (!srcInnerPad) opkit::illegal_operand(#name ": srcInnerPad has to be true, as documented", where);           \
    const uint32_t width = padded_row<T>(srcShape[1]);                                                              \
    uint32_t count = srcShape[0];                                                                                   \
    if constexpr (reduces_rows<pattern>) {                                                                          \
      reduce_rows(dstTensor, srcTensor, sharedTmpBuffer, srcShape[0], width, srcShape[1], where,                    \
                  [&](const auto& dst, const auto& row, const auto& work) {                                         \
                    const auto length = static_cast<int32_t>(srcShape[1]);                                          \
                    row_step;                                                                                       \
                  });                                                                                               \
    } else {                                                                                                        \
      count = srcShape[1];                                                                                          \
      fold_rows(dstTensor, srcTensor, srcShape[0], width, srcShape[1], where,                                       \
                [&](const auto& dst, const auto& sum, const auto& row) {                                            \
                  const auto length = static_cast<int32_t>(srcShape[1]);                                            \
                  fold_step;                                                                                        \
                });                                                                                                 \
    }                                                                                                               \
    const uint32_t reduced = srcShape[reduces_rows<pattern> ? 1 : 0];                                               \
    (void)count, (void)reduced;                                                                                     \
    finish;                                                                                                         \
  }                                                                                                                 \
  template <class T, class pattern, bool isReuseSource = false>                                                     \
  inline void name(const LocalTensor<T>& dstTensor, const LocalTensor<T>& srcTensor, const uint32_t srcShape[],     \
                   bool srcInnerPad, OPKIT_HERE) {                                                                  \
    name<T, pattern, isReuseSource>(dstTensor, srcTensor, ::opkit::high_level::free_space(), srcShape, srcInnerPad, \
                                    where);                                                                         \
  }
#define OPKIT_FLOAT_ONLY (std::is_same_v<T, float>), "float"
#define OPKIT_HALF_OR_FLOAT (std::is_same_v<T, float> || std::is_same_v<T, half>), "half and float"
#define OPKIT_PATTERN_ROWS(name, types, ...) OPKIT_PATTERN_REDUCE(name, types, __VA_ARGS__)
OPKIT_PATTERN_ROWS(ReduceSum, OPKIT_FLOAT_ONLY, ReduceSum(dst, row, work, length, where),
                   Add(dst, sum, row, length, where), )
OPKIT_PATTERN_ROWS(ReduceMax, OPKIT_HALF_OR_FLOAT, ReduceMax(dst, row, work, length, false, where),
                   Max(dst, sum, row, length, where), )
OPKIT_PATTERN_ROWS(ReduceMin, OPKIT_HALF_OR_FLOAT, ReduceMin(dst, row, work, length, false, where),
                   Min(dst, sum, row, length, where), )
OPKIT_PATTERN_ROWS(ReduceMean, OPKIT_FLOAT_ONLY, ReduceSum(dst, row, work, length, where),
                   Add(dst, sum, row, length, where),
                   Muls(dstTensor, dstTensor, 1.0f / static_cast<float>(reduced), static_cast<int32_t>(count), where);
                   PipeBarrier<PIPE_V>())
OPKIT_PATTERN_ROWS(
    ReduceProd, OPKIT_FLOAT_ONLY,
    {
      // A copy of the row, its last block filled with ones, and eight blocks behind it.
      const uint32_t padded = padded_row<T>(srcShape[1]);
      if (sharedTmpBuffer.GetSize() < (padded + 64) * sizeof(float)) {
        opkit::illegal_operand("ReduceProd: its temporary space is smaller than a row and eight data blocks", where);
      }
      Duplicate(work[padded - kColumnFloats], 1.0f, static_cast<int32_t>(kColumnFloats), where);
      PipeBarrier<PIPE_V>();
      Adds(work, row, 0.0f, length, where);
      PipeBarrier<PIPE_V>();
      product(dst, work, work[padded], padded, where);
    },
    Mul(dst, sum, row, length, where), )
#undef OPKIT_PATTERN_ROWS
#undef OPKIT_PATTERN_REDUCE
#undef OPKIT_FLOAT_ONLY
#undef OPKIT_HALF_OR_FLOAT

/// The sums of rows, by ReduceSum in T.
template <typename T, int32_t reduceDim = -1, bool isReuseSource = false, bool isBasicBlock = false>
inline void Sum(const LocalTensor<T>& dstTensor, const LocalTensor<T>& srcTensor,
                const LocalTensor<uint8_t>& sharedTmpBuffer, const SumParams& sumParams, OPKIT_HERE) {
  static_assert(reduceDim == -1, "Sum: reduceDim has to be -1, as documented");
  opkit::high_level::check_rows<T>(sumParams, where);
  opkit::high_level::reduce_rows(dstTensor, srcTensor, sharedTmpBuffer, sumParams.outter, sumParams.inner, sumParams.n,
                                 where, [&](const auto& dst, const auto& row, const auto& work) {
                                   ReduceSum(dst, row, work, static_cast<int32_t>(sumParams.n), where);
                                 });
}
template <typename T, int32_t reduceDim = -1, bool isReuseSource = false, bool isBasicBlock = false>
inline void Sum(const LocalTensor<T>& dstTensor, const LocalTensor<T>& srcTensor, const SumParams& sumParams,
                OPKIT_HERE) {
  Sum<T, reduceDim, isReuseSource, isBasicBlock>(dstTensor, srcTensor, opkit::high_level::free_space(), sumParams,
                                                 where);
}

/// The means of rows: sums in accType, divided and converted to T.
template <typename T, typename accType = T, bool isReuseSource = false, bool isBasicBlock = false,
          int32_t reduceDim = -1>
inline void Mean(const LocalTensor<T>& dstTensor, const LocalTensor<T>& srcTensor,
                 const LocalTensor<uint8_t>& sharedTmpBuffer, const MeanParams& meanParams, OPKIT_HERE) {
  using namespace opkit::high_level;
  static_assert(reduceDim == -1, "Mean: reduceDim has to be -1, as documented");
  check_rows<T>(meanParams, where);
  const float share = 1.0f / static_cast<float>(meanParams.n);
  if constexpr (std::is_same_v<T, accType>) {
    const SumParams rows = {meanParams.outter, meanParams.inner, meanParams.n};
    Sum<T>(dstTensor, srcTensor, sharedTmpBuffer, rows, where);
    Muls(dstTensor, dstTensor, static_cast<T>(share), static_cast<int32_t>(meanParams.outter), where);
    PipeBarrier<PIPE_V>();
  } else {
    static_assert(std::is_same_v<T, half> && std::is_same_v<accType, float>, "Mean: accType is T, or float for half");
    // Groups of rows, because the temporary space that the host reckons with does not grow with their number.
    for (uint32_t first = 0; first < meanParams.outter; first += kMeanRows) {
      const uint32_t count = meanParams.outter - first < kMeanRows ? meanParams.outter - first : kMeanRows;
      const LastingSpace<1, 0> lasting(sharedTmpBuffer, count, meanParams.inner, where);
      const LocalTensor<T> data = srcTensor[first * meanParams.inner];
      in_rows<1, 1>(lasting.rest, count, meanParams.inner, meanParams.n, where,
                    [&](const Rows& rows, const Floats* matrix, const Floats* column) {
                      rows.sum(column[0], rows.template load<false>(data, count, matrix[0]));
                      rows.column().mul(column[0], column[0], share);
                      rows.to_list(lasting.list[0], column[0]);
                    });
      from_floats(dstTensor[first], lasting.list[0], count, where);
    }
  }
}
template <typename T, typename accType = T, bool isReuseSource = false, bool isBasicBlock = false,
          int32_t reduceDim = -1>
inline void Mean(const LocalTensor<T>& dstTensor, const LocalTensor<T>& srcTensor, const MeanParams& meanParams,
                 OPKIT_HERE) {
  Mean<T, accType, isReuseSource, isBasicBlock, reduceDim>(dstTensor, srcTensor, opkit::high_level::free_space(),
                                                           meanParams, where);
}

}  // namespace AscendC

namespace opkit::high_level {

/// Sums along the rows of a part: its columns are gathered one behind the other, added up, and gathered back.
template <typename T>
inline void cumulate_columns(const AscendC::LocalTensor<T>& dst, const AscendC::LocalTensor<T>& src,
                             const AscendC::LocalTensor<uint8_t>& space, uint32_t rows, uint32_t width, Where where) {
  static_assert(sizeof(T) != 0 && vec::accepts<int32_t>(Op::CreateVecIndex),
                "CumSum along the last axis is not implemented for this chip");
  const uint32_t part = cumulated_rows(space.GetSize(), rows, width, is_narrow_float<T>);
  if (part == 0) illegal_operand("CumSum: its temporary space is smaller than eight rows", where);
  const Floats turned = space.template ReinterpretCast<float>();
  const Floats converted = turned[part * width];
  const auto first_index = turned[part * width * (is_narrow_float<T> ? 2 : 1)].template ReinterpretCast<int32_t>();
  const auto row_starts = first_index, column_starts = first_index[part];
  const auto multiples = [&](const auto& dst_index, uint32_t count, uint32_t bytes) {
    AscendC::CreateVecIndex(dst_index, 0, static_cast<int32_t>(count), where);
    Rows::barrier();
    AscendC::Muls(dst_index, dst_index, static_cast<int32_t>(bytes), static_cast<int32_t>(count), where);
    Rows::barrier();
    return dst_index.template ReinterpretCast<uint32_t>();
  };
  const auto from_rows = multiples(row_starts, part, width * sizeof(float));
  const auto from_columns = multiples(column_starts, width, part * sizeof(float));
  for (uint32_t first = 0; first < rows; first += part) {
    const uint32_t count = rows - first < part ? rows - first : part;
    const FloatSteps steps = {count, where};
    const Floats data = as_floats(src[first * width], count * width, converted, where);
    for (uint32_t i = 0; i < width; ++i) {
      AscendC::Gather(turned[i * part], data, from_rows, static_cast<uint32_t>(i * sizeof(float)), count, where);
      Rows::barrier();
      if (i > 0) steps.add(turned[i * part], turned[i * part], turned[(i - 1) * part]);
    }
    Floats results = converted;
    if constexpr (!is_narrow_float<T>) results = dst[first * width];
    for (uint32_t row = 0; row < count; ++row) {
      AscendC::Gather(results[row * width], turned, from_columns, static_cast<uint32_t>(row * sizeof(float)), width,
                      where);
    }
    Rows::barrier();
    if constexpr (is_narrow_float<T>) from_floats(dst[first * width], results, count * width, where);
  }
}

/// Sums down the columns: each row is the one before and the source's, in float.
template <typename T>
inline void cumulate_rows(const AscendC::LocalTensor<T>& dst, const AscendC::LocalTensor<T>& src,
                          const AscendC::LocalTensor<uint8_t>& space, uint32_t rows, uint32_t width, Where where) {
  const FloatSteps steps = {width, where};
  if constexpr (is_narrow_float<T>) {
    if (space.GetSize() < 2 * width * sizeof(float)) {
      illegal_operand("CumSum: its temporary space is smaller than two rows of float", where);
    }
    const Floats sum = space.template ReinterpretCast<float>(), row_space = sum[width];
    steps.fill(sum, 0.0f);
    for (uint32_t row = 0; row < rows; ++row) {
      steps.add(sum, sum, as_floats(src[row * width], width, row_space, where));
      from_floats(dst[row * width], sum, width, where);
    }
  } else {
    steps.add(dst, src, 0.0f);
    for (uint32_t row = 1; row < rows; ++row) steps.add(dst[row * width], dst[(row - 1) * width], src[row * width]);
  }
}

}  // namespace opkit::high_level

namespace AscendC {

template <typename T, const CumSumConfig& config = defaultCumSumConfig>
inline void CumSum(const LocalTensor<T>& dstTensor, const LocalTensor<T>& lastRowTensor,
                   const LocalTensor<T>& srcTensor, const LocalTensor<uint8_t>& sharedTmpBuffer,
                   const CumSumInfo& cumSumInfo, OPKIT_HERE) {
  using namespace opkit::high_level;
  static_assert(config.algorithm == CumSumAlgorithm::CUMSUM_ALGORITHM_LINEBYLINE,
                "CumSum: CUMSUM_ALGORITHM_SKLANSKY is for another chip");
  const uint32_t rows = cumSumInfo.outter, width = cumSumInfo.inner;
  if (width == 0 || width * sizeof(T) % opkit::kBlockBytes != 0) {
    opkit::illegal_operand("CumSum: inner is no multiple of 32 bytes", where);
  }
  const uint64_t elements = uint64_t{rows} * width;
  if (rows == 0 || elements > dstTensor.GetSize() || elements > srcTensor.GetSize() ||
      (config.outputLastRow && width > lastRowTensor.GetSize())) {
    opkit::illegal_operand("CumSum: outter is 0, or a tensor has fewer elements than outter rows of inner", where);
  }
  if constexpr (config.isLastAxis) {
    cumulate_columns(dstTensor, srcTensor, sharedTmpBuffer, rows, width, where);
  } else {
    cumulate_rows(dstTensor, srcTensor, sharedTmpBuffer, rows, width, where);
  }
  if constexpr (config.outputLastRow) {
    Adds(lastRowTensor, dstTensor[(rows - 1) * width], static_cast<T>(0.0f), static_cast<int32_t>(width), where);
    PipeBarrier<PIPE_V>();
  }
}
template <typename T, const CumSumConfig& config = defaultCumSumConfig>
inline void CumSum(const LocalTensor<T>& dstTensor, const LocalTensor<T>& lastRowTensor,
                   const LocalTensor<T>& srcTensor, const CumSumInfo& cumSumInfo, OPKIT_HERE) {
  CumSum<T, config>(dstTensor, lastRowTensor, srcTensor, opkit::high_level::free_space(), cumSumInfo, where);
}

}  // namespace AscendC
