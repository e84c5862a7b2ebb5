/// Lanes of matrix products. k is stepped in rising order with one fused multiply-add a step, in every lane alike, so
/// the bits do not depend on the width of a vector. Vectors run along n.
///
/// Products of halves are exact in a float, so there the targets without a fused instruction multiply and add; for
/// other types they round the exact sum through a double.
#pragma once

#include "isa/lanes/formats.h"
#include "isa/lanes/fused.h"
#include "isa/lanes/lanes.h"

namespace opkit::lanes {
namespace {

constexpr size_t kSide = 16;                       ///< columns of a block of C
constexpr size_t kPartsOfBlock = kSide / kFloats;  ///< vectors that a row of such a block fills
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

/// `rows` rows of `blocks` neighbouring blocks of C. Strides count floats: of A between rows, of B and C between
/// blocks.
template <bool is_product_exact, size_t rows, size_t blocks>
OPKIT_INLINE void multiply_tile(const float* a, size_t a_stride, const float* b, size_t b_stride, float* c,
                                size_t c_stride, size_t k) {
  constexpr size_t kVectors = blocks * kPartsOfBlock;
  F32V sums[rows][kVectors];
  for (size_t row = 0; row < rows; ++row) {
    for (size_t v = 0; v < kVectors; ++v) {
      sums[row][v] = load<F32V>(c + v / kPartsOfBlock * c_stride + row * kSide + v % kPartsOfBlock * kFloats);
    }
  }
  for (size_t step = 0; step < k; ++step) {
    F32V right[kVectors];
    for (size_t v = 0; v < kVectors; ++v) {
      right[v] = load<F32V>(b + v / kPartsOfBlock * b_stride + step * kSide + v % kPartsOfBlock * kFloats);
    }
    for (size_t row = 0; row < rows; ++row) {
      const F32V left = broadcast(a[row * a_stride + step]);
      for (size_t v = 0; v < kVectors; ++v) {
        sums[row][v] = multiply_add<is_product_exact>(left, right[v], sums[row][v]);
      }
    }
  }
  for (size_t row = 0; row < rows; ++row) {
    for (size_t v = 0; v < kVectors; ++v) {
      store(c + v / kPartsOfBlock * c_stride + row * kSide + v % kPartsOfBlock * kFloats, canonical(sums[row][v]));
    }
  }
}

template <bool is_product_exact, size_t blocks>
OPKIT_INLINE void multiply_columns(const FloatProduct& p, const float* b, float* c) {
  const float* a = p.a;
  size_t row = 0;
  const auto at = [&](size_t r) { return a + r * p.a_stride; };
  for (; row + kTileRows <= p.m; row += kTileRows) {
    multiply_tile<is_product_exact, kTileRows, blocks>(at(row), p.a_stride, b, p.b_stride, c + row * kSide, p.c_stride,
                                                       p.k);
  }
  for (; row < p.m; ++row) {
    multiply_tile<is_product_exact, 1, blocks>(at(row), p.a_stride, b, p.b_stride, c + row * kSide, p.c_stride, p.k);
  }
}

template <bool is_product_exact>
void multiply_floats(const FloatProduct& p) {
  size_t block = 0;
  for (; block + kTileBlocks <= p.blocks; block += kTileBlocks) {
    multiply_columns<is_product_exact, kTileBlocks>(p, p.b + block * p.b_stride, p.c + block * p.c_stride);
  }
  for (; block < p.blocks; ++block) {
    multiply_columns<is_product_exact, 1>(p, p.b + block * p.b_stride, p.c + block * p.c_stride);
  }
}

// Fractals are unpacked to floats (or bytes) in an order that the loops above run through.

typedef uint32_t Quad __attribute__((vector_size(16)));
typedef uint16_t Eight __attribute__((vector_size(16)));

/// Four rows of four 32-bit values, transposed.
OPKIT_INLINE void transpose_quads(const uint32_t* from, size_t from_stride, uint32_t* to, size_t to_stride) {
  const Quad r0 = load<Quad>(from);
  const Quad r1 = load<Quad>(from + from_stride);
  const Quad r2 = load<Quad>(from + 2 * from_stride);
  const Quad r3 = load<Quad>(from + 3 * from_stride);
  const Quad a = __builtin_shufflevector(r0, r1, 0, 4, 1, 5);
  const Quad b = __builtin_shufflevector(r0, r1, 2, 6, 3, 7);
  const Quad c = __builtin_shufflevector(r2, r3, 0, 4, 1, 5);
  const Quad d = __builtin_shufflevector(r2, r3, 2, 6, 3, 7);
  store(to, __builtin_shufflevector(a, c, 0, 1, 4, 5));
  store(to + to_stride, __builtin_shufflevector(a, c, 2, 3, 6, 7));
  store(to + 2 * to_stride, __builtin_shufflevector(b, d, 0, 1, 4, 5));
  store(to + 3 * to_stride, __builtin_shufflevector(b, d, 2, 3, 6, 7));
}

/// Eight rows of eight 16-bit values, transposed.
OPKIT_INLINE void transpose_eights(const uint16_t* from, uint16_t* to) {
  Eight row[8];
  for (size_t i = 0; i < 8; ++i) row[i] = load<Eight>(from + i * kSide);
  Eight pair[8];
  for (size_t i = 0; i < 4; ++i) {
    pair[2 * i] = __builtin_shufflevector(row[2 * i], row[2 * i + 1], 0, 8, 1, 9, 2, 10, 3, 11);
    pair[2 * i + 1] = __builtin_shufflevector(row[2 * i], row[2 * i + 1], 4, 12, 5, 13, 6, 14, 7, 15);
  }
  Quad four[8];
  for (size_t i = 0; i < 2; ++i) {
    for (size_t half = 0; half < 2; ++half) {
      const Quad low = (Quad)pair[4 * i + half];
      const Quad high = (Quad)pair[4 * i + 2 + half];
      four[4 * i + 2 * half] = __builtin_shufflevector(low, high, 0, 4, 1, 5);
      four[4 * i + 2 * half + 1] = __builtin_shufflevector(low, high, 2, 6, 3, 7);
    }
  }
  for (size_t i = 0; i < 4; ++i) {
    store(to + 2 * i * kSide, __builtin_shufflevector(four[i], four[4 + i], 0, 1, 4, 5));
    store(to + (2 * i + 1) * kSide, __builtin_shufflevector(four[i], four[4 + i], 2, 3, 6, 7));
  }
}

/// A fractal of 16 x 16 values of 16 bits, transposed.
void transpose_fractal(const void* from, void* to) {
  const auto* source = static_cast<const uint16_t*>(from);
  auto* target = static_cast<uint16_t*>(to);
  for (size_t row = 0; row < kSide; row += 8) {
    for (size_t column = 0; column < kSide; column += 8) {
      transpose_eights(source + row * kSide + column, target + column * kSide + row);
    }
  }
}

struct WidenHalf {
  static F32V widen(HalvesV values) { return widen_half(values); }
};
struct WidenBfloat16 {
  static F32V widen(HalvesV values) { return widen_bfloat16(values); }
};

template <class Widen>
OPKIT_INLINE void widen_row(const uint16_t* from, float* to) {
  for (size_t i = 0; i < kSide; i += kFloats) store(to + i, Widen::widen(load<HalvesV>(from + i)));
}

/// Rows of A, `to_stride` floats apart, from fractals of 16 rows of 16 elements.
template <class Widen>
void unpack_left(const void* fractals, size_t rows, size_t fractals_across, size_t fractals_used, float* to,
                 size_t to_stride) {
  const auto* from = static_cast<const uint16_t*>(fractals);
  for (size_t row = 0; row < rows; ++row) {
    const uint16_t* line = from + (row / kSide * fractals_across * kSide + row % kSide) * kSide;
    for (size_t i = 0; i < fractals_used; ++i) {
      widen_row<Widen>(line + i * kSide * kSide, to + row * to_stride + i * kSide);
    }
  }
}

/// A fractal of B, 16 columns of 16 elements, as 16 rows of 16 floats.
template <class Widen>
void unpack_right(const void* fractal, float* to) {
  alignas(64) uint16_t rows[kSide * kSide];
  transpose_fractal(fractal, rows);
  for (size_t row = 0; row < kSide; ++row) widen_row<Widen>(rows + row * kSide, to + row * kSide);
}

/// The same of 16 columns of 8 floats.
void unpack_right_floats(const void* fractal, float* to) {
  const auto* from = static_cast<const uint32_t*>(fractal);
  for (size_t column = 0; column < kSide; column += 4) {
    for (size_t row = 0; row < 8; row += 4) {
      transpose_quads(from + column * 8 + row, 8, reinterpret_cast<uint32_t*>(to) + row * kSide + column, kSide);
    }
  }
}

constexpr void add_matmul(LaneTable& table) {
  table.multiply_halves = multiply_floats<true>;
  table.multiply_floats = multiply_floats<false>;
  table.transpose_fractal = transpose_fractal;
  table.unpack_left_half = unpack_left<WidenHalf>;
  table.unpack_left_bfloat16 = unpack_left<WidenBfloat16>;
  table.unpack_right_half = unpack_right<WidenHalf>;
  table.unpack_right_bfloat16 = unpack_right<WidenBfloat16>;
  table.unpack_right_float = unpack_right_floats;
}

}  // namespace
}  // namespace opkit::lanes
