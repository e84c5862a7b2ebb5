/// SIMD code for contiguous runs of elements. Masks, strides and overlap are vector.cpp's business.
///
/// One text, compiled once per target (cmake/lanes.cmake); the target is chosen at run time. Every target gives the
/// same bits: no libm, no contraction, NaN results are the canonical quiet NaN.
#pragma once

#include <cstddef>
#include <cstdint>

#include "opkit/export.h"
#include "opkit/isa/ops.h"
#include "opkit/types.h"

namespace opkit::lanes {

/// Works on `count` elements. Sources and destination are disjoint or start at the same address.
using Lane = void (*)(void* dst, const void* const* sources, const uint64_t* scalars, size_t count);

constexpr size_t kMostChainSteps = 32;

/// One instruction of a chain: elementwise, of floats, or a Cast between these and 16-bit floats.
struct ChainStep {
  Op op;
  bool is_stored;  ///< whether its result goes to memory
  uint64_t scalar;
  const uint8_t* first;   ///< null: the result of the step before
  const uint8_t* second;  ///< of instructions with two sources
  uint8_t* dst;
  DType first_dtype, dst_dtype;
};

/// C += A * B. Strides count words of four bytes. A lies in rows, or in fractals; B and C in blocks of 16 columns, row
/// after row. A word is a float, or some narrower elements along k.
template <class Word, class Sum>
struct Product {
  const Word* a;
  size_t a_stride;        ///< between rows
  size_t a_block_stride;  ///< between blocks of 16 rows
  size_t a_chunk_stride;  ///< between chunks of 8 words of a row
  const Word* b;
  size_t b_stride;  ///< between blocks
  Sum* c;
  size_t c_stride;  ///< between blocks
  size_t m;
  size_t blocks;
  size_t steps;          ///< words of a row of A
  int32_t a_offset = 0;  ///< that the integers of A are too large by

  void set_rows(const Word* rows, size_t stride) {
    a = rows;
    a_stride = stride;
    a_block_stride = 16 * stride;
    a_chunk_stride = 8;
  }
  /// Fractals of 16 rows of 8 words, `across` of them beside one another.
  void set_fractals(const Word* fractals, size_t across) {
    a = fractals;
    a_stride = 8;
    a_block_stride = 128 * across;
    a_chunk_stride = 128;
  }
};
using FloatProduct = Product<float, float>;
using IntegerProduct = Product<uint32_t, int32_t>;  ///< saturates once
using PairProduct = Product<uint32_t, float>;       ///< of bfloat16, the first of two in the upper half of a word
using MultiplyFloats = void (*)(const FloatProduct& product);
using MultiplyIntegers = void (*)(const IntegerProduct& product);
using MultiplyPairs = void (*)(const PairProduct& product);

/// Rows of A, `to_stride` floats apart, from fractals of 16 rows of 16 elements; `fractals_across` lie beside one
/// another, the first `fractals_used` are unpacked.
using UnpackLeft = void (*)(const void* fractals, size_t rows, size_t fractals_across, size_t fractals_used, float* to,
                            size_t to_stride);
/// One fractal of B, 16 columns, as rows of 16 floats.
using UnpackRight = void (*)(const void* fractal, float* to);

constexpr size_t kOps = static_cast<size_t>(Op::kCount);
constexpr size_t kDTypes = static_cast<size_t>(DType::kCount);
constexpr size_t kRoundModes = 7;    ///< CAST_NONE to CAST_ODD
constexpr size_t kCompareModes = 6;  ///< CMPMODE

/// Null where a type is not accepted.
struct LaneTable {
  const char* target;
  Lane elementwise[kOps][kDTypes];
  /// Of rows with two sources, where the second is one data block that goes with every block of the first.
  Lane elementwise_block[kOps][kDTypes];

  /// Runs all steps on some elements, then on the next; returns how many it has done, which may be fewer than `count`.
  /// Places that steps read and write are equal or disjoint.
  size_t (*run_chain)(const ChainStep* steps, size_t step_count, size_t count);

  /// By destination, source, RoundMode. scalars[0]: the half in the DEQSCALE register, for S32 to F16.
  Lane cast[kDTypes][kDTypes][kRoundModes];

  /// dst: one bit an element, the first in bit 0; count: a multiple of 8. Scalar form: scalars[0] is the right side.
  Lane compare[kCompareModes][kDTypes];
  Lane compare_scalar[kCompareModes][kDTypes];

  /// dst[i] = bit i of sources[2] ? sources[0][i] : sources[1][i], by element size in bytes. Scalar form: scalars[0]
  /// in place of sources[1].
  Lane select[5];
  Lane select_scalar[5];

  /// dst[i] = scalars[0], by element size in bytes.
  Lane fill[5];

  /// dst[i] = scalars[0] + scalars[1] + i; scalars[1] is an integer.
  Lane ramp[kDTypes];

  /// Sums of pairs, of data blocks and of repeats; `count` repeats of 256 bytes give 64 or 128, 8, 1 elements each.
  Lane sum_pairs[kDTypes];
  Lane sum_blocks[kDTypes];
  Lane sum_repeats[kDTypes];

  /// dst[0] = the sum of `count` elements, at least one, from the first to the last.
  Lane sum_in_order[kDTypes];

  /// dst[0] = the extreme of `count` elements; a NaN wins. Of equal zeros it is the last one.
  Lane maximum[kDTypes];
  Lane minimum[kDTypes];
  /// The same of data blocks and of repeats, as sums of them.
  Lane maximum_blocks[kDTypes];
  Lane minimum_blocks[kDTypes];
  Lane maximum_repeats[kDTypes];
  Lane minimum_repeats[kDTypes];

  /// Matrix products. `multiply_halves` is for values that were halves, whose products are exact.
  MultiplyFloats multiply_halves;
  MultiplyFloats multiply_floats;
  UnpackLeft unpack_left_half;
  UnpackLeft unpack_left_bfloat16;
  UnpackRight unpack_right_half;
  UnpackRight unpack_right_bfloat16;
  UnpackRight unpack_right_float;
  MultiplyIntegers multiply_pairs;  ///< words of two signed 16-bit elements
  MultiplyIntegers multiply_quads;  ///< of four bytes, A's unsigned and B's signed; null without, see has_byte_dots
  /// Rows of A as words of four bytes, int8_t flipped to uint8_t; null without multiply_quads.
  void (*unpack_left_quads)(const void* fractals, size_t rows, size_t fractals_across, size_t fractals_used, bool flips,
                            uint32_t* to, size_t to_stride);
  /// Products of bfloat16 in pairs, see has_bfloat16_dots; null without. The results are those of multiply_floats if
  /// the least exponents of A and B sum up to kLeastPairExponents; either is the biased exponent of the smallest
  /// nonzero element, 0 for a subnormal one, and what unpacking returns.
  uint32_t (*unpack_left_pairs)(const void* fractals, size_t rows, size_t fractals_across, size_t fractals_used,
                                uint32_t* to, size_t to_stride);
  /// All of B: `blocks` fractals beside one another, `fractals_along` times.
  uint32_t (*unpack_right_pairs)(const void* fractals, size_t fractals_along, size_t blocks, uint32_t* to,
                                 size_t to_stride);
  MultiplyPairs multiply_bfloat16_pairs;
  bool (*rounds_after_each_product)();
  void (*copy_fractal)(const void* from, void* to);  ///< 512 bytes; the two do not overlap
  /// 16 x 16 elements of 16 bits; the two do not overlap.
  void (*transpose_fractal)(const void* from, void* to);
  /// 16 x 16 words: two fractals of 16 rows of 8, one behind the other, and two apart. They do not overlap.
  void (*transpose_words)(const void* from, void* first, void* second);
  /// Columns of whole data blocks, `row_stride` bytes from row to row, to columns that lie `column_stride` apart and
  /// have a data block every `block_stride` bytes. The two do not overlap.
  void (*rows_to_columns)(const uint8_t* from, size_t row_stride, size_t rows, size_t columns, uint8_t* to,
                          size_t block_stride, size_t column_stride);
};

/// The lanes in use: the best target that this host has, unless set_lane_target chose another.
OPKIT_API const LaneTable& table();

/// Whether this host runs the table's multiply_quads.
bool has_byte_dots();

/// Whether this host runs the table's multiply_bfloat16_pairs, and with the bits of two fused multiply-adds.
bool has_bfloat16_dots();

/// An element of bfloat16 with biased exponent e is a multiple of 2^(e - 127 - 7); the product of two has to be one of
/// 2^-126.
constexpr uint32_t kLeastPairExponents = 2 * (127 + 7) - 126;

/// Chooses a target by name ("avx512", "avx2", "baseline"), or the best for "auto". False when this host lacks it.
OPKIT_API bool set_lane_target(const char* name);

/// Names of the targets that this host can run, best first; null-terminated.
OPKIT_API const char* const* lane_targets();

}  // namespace opkit::lanes
