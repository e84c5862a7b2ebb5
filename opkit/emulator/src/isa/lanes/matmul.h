/// Lanes of matrix products. k is stepped in rising order with one fused multiply-add a step, in every lane alike, so
/// the bits do not depend on the width of a vector. Vectors run along n.
///
/// Products of halves are exact in a float, so there the targets without a fused instruction multiply and add; for
/// other types they round the exact sum through a double.
#pragma once

#include "isa/lanes/fractals.h"
#include "isa/lanes/fused.h"

namespace opkit::lanes {
namespace {

constexpr size_t kPartsOfBlock = kSide / kFloats;  ///< vectors that a row of a block of C fills
static_assert(kSide % kFloats == 0, "a row of a block of C is whole vectors");

#if defined(__AVX512F__)
constexpr size_t kTileRows = 8;
constexpr size_t kTileBlocks = 2;
#elif defined(__AVX2__)
constexpr size_t kTileRows = 4;
constexpr size_t kTileBlocks = 1;
#else
constexpr size_t kTileRows = 2;
constexpr size_t kTileBlocks = 1;
#endif

/// Rows of A that stay in the first cache while the blocks of B pass.
constexpr size_t kLeftBytes = 16384;

/// Where a tile of C keeps vector `v` of its row `row`.
OPKIT_INLINE size_t place_in_tile(size_t row, size_t v, size_t block_stride) {
  return v / kPartsOfBlock * block_stride + row * kSide + v % kPartsOfBlock * kFloats;
}

/// Steps along k for `rows` rows of `blocks` neighbouring blocks of C. The rows lie in one block of 16.
template <class Step, size_t rows, size_t vectors, class Product>
OPKIT_INLINE void accumulate(typename Step::V (&sums)[rows][vectors], const Product& p, size_t first_row,
                             size_t block) {
  using V = typename Step::V;
  const auto* a = p.a + first_row / kSide * p.a_block_stride + first_row % kSide * p.a_stride;
  const auto* b = p.b + block * p.b_stride;
  const auto add_step = [&](size_t step) {
    V right[vectors];
    for (size_t v = 0; v < vectors; ++v) right[v] = load<V>(b + place_in_tile(step, v, p.b_stride));
    for (size_t row = 0; row < rows; ++row) {
      const V left = Step::everywhere(a[row * p.a_stride + step]);
      for (size_t v = 0; v < vectors; ++v) sums[row][v] = Step::add(sums[row][v], left, right[v]);
    }
  };
  size_t steps = p.steps;
  for (; steps >= kWordsOfRow; steps -= kWordsOfRow) {
    for (size_t step = 0; step < kWordsOfRow; ++step) add_step(step);
    a += p.a_chunk_stride;
    b += kWordsOfRow * kSide;
  }
  for (size_t step = 0; step < steps; ++step) add_step(step);
}

/// The tiles of `blocks` blocks of C, in rows from `first_row` up to `end_row`.
template <class Kernel, size_t blocks, class Product>
OPKIT_INLINE void multiply_columns(const Product& p, size_t first_row, size_t end_row, size_t block) {
  typename Kernel::V start[blocks * kPartsOfBlock];
  Kernel::start(p, block, start);
  size_t row = first_row;
  for (; row + kTileRows <= end_row; row += kTileRows) Kernel::template tile<kTileRows>(p, row, block, start);
  for (; row < end_row; ++row) Kernel::template tile<1>(p, row, block, start);
}

template <class Kernel, class Product>
OPKIT_INLINE void multiply(const Product& p) {
  const size_t fitting = kLeftBytes / (p.steps * 4) / kTileRows * kTileRows;
  const size_t rows = fitting < kTileRows ? kTileRows : fitting;
  for (size_t first = 0; first < p.m; first += rows) {
    const size_t end = first + rows < p.m ? first + rows : p.m;
    size_t block = 0;
    for (; block + kTileBlocks <= p.blocks; block += kTileBlocks) {
      multiply_columns<Kernel, kTileBlocks>(p, first, end, block);
    }
    for (; block < p.blocks; ++block) multiply_columns<Kernel, 1>(p, first, end, block);
  }
}

/// A tile of C into registers.
template <size_t rows, size_t vectors>
OPKIT_INLINE void load_tile(const float* c, size_t block_stride, F32V (&sums)[rows][vectors]) {
  for (size_t row = 0; row < rows; ++row) {
    for (size_t v = 0; v < vectors; ++v) sums[row][v] = load<F32V>(c + place_in_tile(row, v, block_stride));
  }
}

/// And back; every NaN becomes the same one.
template <size_t rows, size_t vectors>
OPKIT_INLINE void store_tile(float* c, size_t block_stride, const F32V (&sums)[rows][vectors]) {
  for (size_t row = 0; row < rows; ++row) {
    for (size_t v = 0; v < vectors; ++v) store(c + place_in_tile(row, v, block_stride), canonical(sums[row][v]));
  }
}

template <bool is_product_exact>
struct FloatStep {
  using V = F32V;
  OPKIT_INLINE V everywhere(float value) { return broadcast(value); }
  OPKIT_INLINE V add(V sum, V a, V b) { return multiply_add<is_product_exact>(a, b, sum); }
};

template <bool is_product_exact>
struct FloatKernel {
  using V = F32V;
  template <size_t vectors>
  OPKIT_INLINE void start(const FloatProduct&, size_t, V (&)[vectors]) {}

  template <size_t rows, size_t vectors>
  OPKIT_INLINE void tile(const FloatProduct& p, size_t first_row, size_t block, const V (&)[vectors]) {
    float* c = p.c + block * p.c_stride + first_row * kSide;
    V sums[rows][vectors];
    load_tile(c, p.c_stride, sums);
    accumulate<FloatStep<is_product_exact>>(sums, p, first_row, block);
    store_tile(c, p.c_stride, sums);
  }
};

template <bool is_product_exact>
void multiply_floats(const FloatProduct& p) {
  multiply<FloatKernel<is_product_exact>>(p);
}

constexpr void add_matmul(LaneTable& table) {
  table.multiply_halves = multiply_floats<true>;
  table.multiply_floats = multiply_floats<false>;
  table.copy_fractal = copy_fractal;
  table.transpose_fractal = transpose_fractal;
  table.transpose_words = transpose_square;
  table.rows_to_columns = rows_to_columns;
  table.unpack_left_half = unpack_left<WidenHalf>;
  table.unpack_left_bfloat16 = unpack_left<WidenBfloat16>;
  table.unpack_right_half = unpack_right<WidenHalf>;
  table.unpack_right_bfloat16 = unpack_right<WidenBfloat16>;
  table.unpack_right_float = unpack_right_floats;
}

}  // namespace
}  // namespace opkit::lanes
