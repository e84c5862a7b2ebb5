/// Transpose between ND and NZ, with axes exchanged, split or merged. Source: Ascend C API, high-level API, tensor
/// transformation.
#pragma once

#include "opkit/api/data_copy.h"
#include "opkit/api/vector_tiling.h"
#include "opkit/api/vector_transpose.h"
#include "opkit/high_level/elementwise.h"
#include "opkit/high_level/types.h"

namespace opkit::high_level {

constexpr uint32_t kFractal = 16;  ///< rows and columns of a fractal of NZ, whatever its elements

/// dst[column * dst_step + row] = src[row * src_step + column]; rows and columns are multiples of 16.
template <typename T>
inline void transpose_matrix(const AscendC::LocalTensor<T>& dst, uint32_t dst_step, const AscendC::LocalTensor<T>& src,
                             uint32_t src_step, uint32_t rows, uint32_t columns, Where where) {
  // An instruction turns 16 rows of a data block each; of 32 bits, columns come as two halves.
  constexpr uint32_t kBlock = kBlockBytes / sizeof(T), kHalves = kFractal / kBlock;
  constexpr uint32_t kMostRepeats = 255, kMostStep = 65535;
  const uint32_t most = dst_step > kMostStep ? 1 : kMostRepeats;
  for (uint32_t row = 0; row < rows; row += kFractal) {
    for (uint32_t column = 0; column < columns;) {
      const uint32_t left = (columns - column) / kBlock, repeats = left < most ? left : most;
      AscendC::LocalTensor<T> from[kFractal], to[kFractal];
      for (uint32_t i = 0; i < kFractal; ++i) {
        from[i] = src[(row + i) * src_step + column];
        to[i] = dst[(column + i / kHalves) * dst_step + row + i % kHalves * kBlock];
      }
      const bool many = repeats > 1;
      AscendC::TransDataTo5HD<T>(to, from,
                                 {false, false, static_cast<uint8_t>(repeats),
                                  static_cast<uint16_t>(many ? dst_step : 0), static_cast<uint16_t>(many ? 1 : 0)},
                                 where);
      column += repeats * kBlock;
    }
  }
  AscendC::PipeBarrier<PIPE_V>();
}

/// [B, N, S, H/N] as the tiling has it, and which of the six forms between NZ and ND is asked for.
struct HeadShape {
  uint32_t b, n, s, head;
  AscendC::TransposeType type;

  bool swaps() const {  ///< axes 1 and 2
    return type == AscendC::TransposeType::TRANSPOSE_NZ2ND_0213 || type == AscendC::TransposeType::TRANSPOSE_NZ2NZ_0213;
  }
  bool splits() const {  ///< the last axis, H to [N, H/N]
    return type == AscendC::TransposeType::TRANSPOSE_NZ2NZ_012_WITH_N ||
           type == AscendC::TransposeType::TRANSPOSE_NZ2ND_012_WITH_N;
  }
  bool is_nz() const {  ///< the result
    return type == AscendC::TransposeType::TRANSPOSE_NZ2NZ_0213 ||
           type == AscendC::TransposeType::TRANSPOSE_NZ2NZ_012_WITH_N ||
           type == AscendC::TransposeType::TRANSPOSE_NZ2NZ_012_WITHOUT_N;
  }
  bool has_whole_source() const { return splits(); }  ///< its last axis is H, not H/N in N parts
  bool has_whole_result() const { return !swaps() && !splits(); }
  uint32_t padded_head() const { return round_up(head, kFractal); }
  uint32_t padded_whole() const { return round_up(n * head, kFractal); }

  /// Where the fractals of a column of the source begin: column `at` of part `part`.
  uint32_t source(uint32_t ib, uint32_t part, uint32_t at) const {
    const uint32_t width = has_whole_source() ? padded_whole() : padded_head();
    const uint32_t parts = has_whole_source() ? 1 : n;
    return ((ib * parts + part) * width + at / kFractal * kFractal) * s;
  }
  /// Where sixteen columns of the result begin, from column `at` of part `part`, and how far apart their rows lie.
  uint32_t result(uint32_t ib, uint32_t part, uint32_t at) const {
    if (swaps() && is_nz()) return (ib * s * padded_head() + at) * round_up(n, kFractal) + part * kFractal;
    if (swaps()) return (ib * s * n + part) * padded_head() + at;
    const uint32_t width = has_whole_result() ? padded_whole() : padded_head();
    const uint32_t start = (ib * (has_whole_result() ? 1 : n) + part) * width * s;
    return is_nz() ? start + at * s : start + at;
  }
  uint32_t row_step() const {
    if (swaps()) return padded_head() * (is_nz() ? round_up(n, kFractal) : n);
    if (is_nz()) return kFractal;
    return has_whole_result() ? padded_whole() : padded_head();
  }
};

/// Sixteen columns at a time: turned to rows, joined where they come from several fractals, turned back. What fills the
/// last columns up to sixteen is 0.
template <typename T>
inline void transpose_heads(const AscendC::LocalTensor<T>& dst, const AscendC::LocalTensor<T>& src,
                            const AscendC::LocalTensor<uint8_t>& space, const HeadShape& shape, Where where) {
  if (space.GetSize() < transpose_bytes(static_cast<uint32_t>(shape.type), shape.s, sizeof(T))) {
    illegal_operand("Transpose: its temporary space is smaller than its tiling says", where);
  }
  const uint32_t s = shape.s, whole = shape.n * shape.head;
  const auto turned = space.template ReinterpretCast<T>(), joined = turned[shape.swaps() ? 0 : kFractal * s];
  const uint32_t parts = shape.has_whole_result() ? 1 : shape.n;
  const uint32_t width = shape.has_whole_result() ? whole : shape.head;
  // Which fractals the turned rows are.
  uint32_t held = UINT32_MAX;
  for (uint32_t b = 0; b < shape.b; ++b) {
    for (uint32_t part = 0; part < parts; ++part) {
      for (uint32_t at = 0; at < width; at += kFractal) {
        const uint32_t count = width - at < kFractal ? width - at : kFractal;
        auto rows = joined;
        for (uint32_t column = 0; column < count;) {
          const uint32_t flat = part * width + at + column;  // of all H
          const uint32_t from_part = shape.has_whole_source() ? 0 : flat / shape.head;
          const uint32_t from_width = shape.has_whole_source() ? whole : shape.head;
          const uint32_t from = flat - from_part * from_width, within = from % kFractal;
          uint32_t run = kFractal - within;
          if (run > count - column) run = count - column;
          if (run > from_width - from) run = from_width - from;
          const uint32_t source = shape.source(b, from_part, from);
          if (source != held) transpose_matrix(turned, s, src[source], kFractal, s, kFractal, where);
          held = source;
          if (run == kFractal) {
            rows = turned;
          } else {
            AscendC::DataCopy(joined[column * s], turned[within * s], run * s, where);
          }
          column += run;
        }
        if (count < kFractal) {
          AscendC::Duplicate(joined[count * s], T{0}, static_cast<int32_t>((kFractal - count) * s), where);
        }
        AscendC::PipeBarrier<PIPE_V>();
        transpose_matrix(dst[shape.result(b, part, at)], shape.row_step(), rows, s, kFractal, s, where);
      }
    }
  }
}

}  // namespace opkit::high_level

namespace AscendC {

/// Of the forms of this chip: NZ to ND or NZ with axes exchanged, split or merged, and matrices of ND whose sides are
/// multiples of 16. Tails of H/N are filled with 0.
template <typename T>
inline void Transpose(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LocalTensor<uint8_t>& sharedTmpBuffer,
                      TransposeType transposeType, const ConfusionTransposeTiling& tiling, OPKIT_HERE) {
  using namespace opkit::high_level;
  static_assert(sizeof(T) == 2 || sizeof(T) == 4, "Transpose takes types of 16 and 32 bits on this chip");
  if (transposeType == TransposeType::TRANSPOSE_ND2ND_ONLY) {
    transpose_matrix(dst, tiling.param1, src, tiling.param2, tiling.param1, tiling.param2, where);
    return;
  }
  if (transposeType == TransposeType::TRANSPOSE_TYPE_NONE || transposeType > TransposeType::TRANSPOSE_ND2ND_ONLY) {
    opkit::illegal_operand("Transpose: this chip has TRANSPOSE_NZ2ND_0213 to TRANSPOSE_ND2ND_ONLY", where);
  }
  transpose_heads(dst, src, sharedTmpBuffer,
                  {tiling.param1, tiling.param2, tiling.param3, tiling.param4, transposeType}, where);
}
template <typename T>
inline void Transpose(const LocalTensor<T>& dst, const LocalTensor<T>& src, TransposeType transposeType,
                      const ConfusionTransposeTiling& tiling, OPKIT_HERE) {
  Transpose(dst, src, opkit::high_level::free_space(), transposeType, tiling, where);
}

/// Transpose's older name.
template <typename T>
inline void ConfusionTranspose(const LocalTensor<T>& dst, const LocalTensor<T>& src,
                               const LocalTensor<uint8_t>& sharedTmpBuffer, TransposeType transposeType,
                               const ConfusionTransposeTiling& tiling, OPKIT_HERE) {
  Transpose(dst, src, sharedTmpBuffer, transposeType, tiling, where);
}
template <typename T>
inline void ConfusionTranspose(const LocalTensor<T>& dst, const LocalTensor<T>& src, TransposeType transposeType,
                               const ConfusionTransposeTiling& tiling, OPKIT_HERE) {
  Transpose(dst, src, transposeType, tiling, where);
}

}  // namespace AscendC
