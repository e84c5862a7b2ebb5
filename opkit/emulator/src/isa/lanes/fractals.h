/// Fractals unpacked to the order that the products run through: rows of A, and of B blocks of 16 columns, row after
/// row.
#pragma once

#include "isa/lanes/formats.h"
#include "isa/lanes/lanes.h"

namespace opkit::lanes {
namespace {

constexpr size_t kSide = 16;       ///< rows of a fractal, columns of a block of C
constexpr size_t kWordsOfRow = 8;  ///< 32-bit words in a fractal's row
constexpr size_t kWordsOfFractal = kSide * kWordsOfRow;

typedef uint32_t Quad __attribute__((vector_size(16)));
typedef uint16_t Eight __attribute__((vector_size(16)));
typedef uint32_t Row __attribute__((vector_size(32)));  ///< of a fractal

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

#if defined(__AVX512F__)
/// A fractal's 16 rows of 8 words as 8 rows of 16, in registers.
OPKIT_INLINE void transpose_words(const uint32_t* fractal, U32V (&rows)[kWordsOfRow]) {
  U32V low[4];   // words 0 to 3 of four rows: all first ones, all second ones, ...
  U32V high[4];  // words 4 to 7
  for (size_t i = 0; i < 4; ++i) {
    const U32V a = load<U32V>(fractal + 4 * i * kWordsOfRow);
    const U32V b = load<U32V>(fractal + (4 * i + 2) * kWordsOfRow);
    low[i] = __builtin_shufflevector(a, b, 0, 8, 16, 24, 1, 9, 17, 25, 2, 10, 18, 26, 3, 11, 19, 27);
    high[i] = __builtin_shufflevector(a, b, 4, 12, 20, 28, 5, 13, 21, 29, 6, 14, 22, 30, 7, 15, 23, 31);
  }
  const auto merge = [](const U32V(&fours)[4], U32V* to) {
    U32V first[2];   // words 0 and 1 of eight rows
    U32V second[2];  // words 2 and 3
    for (size_t i = 0; i < 2; ++i) {
      const U32V a = fours[2 * i];
      const U32V b = fours[2 * i + 1];
      first[i] = __builtin_shufflevector(a, b, 0, 1, 2, 3, 16, 17, 18, 19, 4, 5, 6, 7, 20, 21, 22, 23);
      second[i] = __builtin_shufflevector(a, b, 8, 9, 10, 11, 24, 25, 26, 27, 12, 13, 14, 15, 28, 29, 30, 31);
    }
    const auto halves = [](U32V a, U32V b, U32V* pair) {
      pair[0] = __builtin_shufflevector(a, b, 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23);
      pair[1] = __builtin_shufflevector(a, b, 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31);
    };
    halves(first[0], first[1], to);
    halves(second[0], second[1], to + 2);
  };
  merge(low, rows);
  merge(high, rows + 4);
}
#endif

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

/// As vectors: a copy of a known size may become an instruction for strings, which starts slowly.
void copy_fractal(const void* from, void* to) {
  const auto* words = static_cast<const uint32_t*>(from);
  auto* target = static_cast<uint32_t*>(to);
  constexpr size_t kStep = kVectorBytes / 4;
  for (size_t i = 0; i < kWordsOfFractal; i += kStep) store(target + i, load<U32V>(words + i));
}

/// A fractal of 16 x 16 values of 16 bits, transposed.
void transpose_fractal(const void* from, void* to) {
  auto* target = static_cast<uint16_t*>(to);
#if defined(__AVX512F__)
  U32V pairs[kWordsOfRow];
  transpose_words(static_cast<const uint32_t*>(from), pairs);
  for (size_t pair = 0; pair < kWordsOfRow; ++pair) {
    store(target + 2 * pair * kSide, __builtin_convertvector(pairs[pair], HalvesV));
    store(target + (2 * pair + 1) * kSide, __builtin_convertvector(pairs[pair] >> 16, HalvesV));
  }
#else
  const auto* source = static_cast<const uint16_t*>(from);
  for (size_t row = 0; row < kSide; row += 8) {
    for (size_t column = 0; column < kSide; column += 8) {
      transpose_eights(source + row * kSide + column, target + column * kSide + row);
    }
  }
#endif
}

/// 16 x 16 words, transposed: two fractals of 16 rows of 8 words each.
void transpose_square(const void* from, void* first, void* second) {
  uint32_t* const to[2] = {static_cast<uint32_t*>(first), static_cast<uint32_t*>(second)};
  for (size_t half = 0; half < 2; ++half) {
    const auto* fractal = static_cast<const uint32_t*>(from) + half * kWordsOfFractal;
    const size_t place = half * kWordsOfRow * kWordsOfRow;
#if defined(__AVX512F__)
    U32V rows[kWordsOfRow];
    transpose_words(fractal, rows);
    for (size_t row = 0; row < kWordsOfRow; ++row) {
      store(to[0] + place + row * kWordsOfRow, __builtin_shufflevector(rows[row], rows[row], 0, 1, 2, 3, 4, 5, 6, 7));
      store(to[1] + place + row * kWordsOfRow,
            __builtin_shufflevector(rows[row], rows[row], 8, 9, 10, 11, 12, 13, 14, 15));
    }
#else
    for (size_t column = 0; column < kSide; column += 4) {
      uint32_t* target = to[column / kWordsOfRow] + place + column % kWordsOfRow;
      for (size_t row = 0; row < kWordsOfRow; row += 4) {
        transpose_quads(fractal + column * kWordsOfRow + row, kWordsOfRow, target + row * kWordsOfRow, kWordsOfRow);
      }
    }
#endif
  }
}

/// 16 rows at a time, so that a cache line is read once; of each as many columns as two lines hold.
void rows_to_columns(const uint8_t* from, size_t row_stride, size_t rows, size_t columns, uint8_t* to,
                     size_t block_stride, size_t column_stride) {
  constexpr size_t kColumns = 4;
  constexpr size_t kAhead = 128;  // bytes: hosts do not foresee 16 lines that far apart
  for (size_t first = 0; first < rows; first += kSide) {
    const size_t end = first + kSide < rows ? first + kSide : rows;
    size_t column = 0;
    for (; column + kColumns <= columns; column += kColumns) {
      for (size_t row = first; row < end; ++row) {
        const uint8_t* line = from + row * row_stride + column * sizeof(Row);
        uint8_t* block = to + row * block_stride + column * column_stride;
        __builtin_prefetch(line + kAhead);
        __builtin_prefetch(line + kAhead + 64);
        for (size_t i = 0; i < kColumns; ++i) store(block + i * column_stride, load<Row>(line + i * sizeof(Row)));
      }
    }
    for (; column < columns; ++column) {
      for (size_t row = first; row < end; ++row) {
        store(to + row * block_stride + column * column_stride,
              load<Row>(from + row * row_stride + column * sizeof(Row)));
      }
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
#if defined(__AVX512F__)
  U32V pairs[kWordsOfRow];
  transpose_words(static_cast<const uint32_t*>(fractal), pairs);
  for (size_t pair = 0; pair < kWordsOfRow; ++pair) {
    store(to + 2 * pair * kSide, Widen::widen(__builtin_convertvector(pairs[pair], HalvesV)));
    store(to + (2 * pair + 1) * kSide, Widen::widen(__builtin_convertvector(pairs[pair] >> 16, HalvesV)));
  }
#else
  alignas(64) uint16_t rows[kSide * kSide];
  transpose_fractal(fractal, rows);
  for (size_t row = 0; row < kSide; ++row) widen_row<Widen>(rows + row * kSide, to + row * kSide);
#endif
}

/// The same of 16 columns of 8 floats.
void unpack_right_floats(const void* fractal, float* to) {
  const auto* from = static_cast<const uint32_t*>(fractal);
#if defined(__AVX512F__)
  U32V rows[kWordsOfRow];
  transpose_words(from, rows);
  for (size_t row = 0; row < kWordsOfRow; ++row) store(to + row * kSide, rows[row]);
#else
  for (size_t column = 0; column < kSide; column += 4) {
    for (size_t row = 0; row < kWordsOfRow; row += 4) {
      transpose_quads(from + column * kWordsOfRow + row, kWordsOfRow,
                      reinterpret_cast<uint32_t*>(to) + row * kSide + column, kSide);
    }
  }
#endif
}

#if defined(__AVX512F__)
/// Rows of A in words of four bytes, every byte's sign bit flipped if `flips`: int8_t becomes uint8_t, 128 too large.
void unpack_left_quads(const void* fractals, size_t rows, size_t fractals_across, size_t fractals_used, bool flips,
                       uint32_t* to, size_t to_stride) {
  const auto* from = static_cast<const uint32_t*>(fractals);
  const Row flipped = Row{} + (flips ? 0x80808080 : 0);
  for (size_t row = 0; row < rows; ++row) {
    const uint32_t* line = from + (row / kSide * fractals_across * kSide + row % kSide) * kWordsOfRow;
    for (size_t i = 0; i < fractals_used; ++i) {
      store(to + row * to_stride + i * kWordsOfRow, load<Row>(line + i * kWordsOfFractal) ^ flipped);
    }
  }
}

/// Smallest of 16-bit keys; a vector of them, to be folded at the end.
OPKIT_INLINE U16V smaller(U16V a, U16V b) { return (U16V)_mm512_min_epu16((__m512i)a, (__m512i)b); }

/// Grows with the magnitude; that of zero is the largest.
OPKIT_INLINE U16V magnitude_keys(U32V pairs) { return ((U16V)pairs << 1) - 1; }

OPKIT_INLINE uint32_t least_exponent_of(U16V keys) {
  uint16_t each[kVectorBytes / 2];  // a vector that is indexed would lie in memory all the time
  store(each, keys);
  uint16_t least = each[0];
  for (const uint16_t key : each) least = key < least ? key : least;
  return (least + 1u) >> 8;
}

/// The first of two elements comes to the upper half of a word, where the dot product begins.
OPKIT_INLINE U32V swap_pairs(U32V pairs) { return pairs << 16 | pairs >> 16; }

uint32_t unpack_left_pairs(const void* fractals, size_t rows, size_t fractals_across, size_t fractals_used,
                           uint32_t* to, size_t to_stride) {
  const auto* from = static_cast<const uint32_t*>(fractals);
  U16V keys = U16V{} - 1;
  for (size_t row = 0; row < rows; ++row) {
    const uint32_t* line = from + (row / kSide * fractals_across * kSide + row % kSide) * kWordsOfRow;
    for (size_t i = 0; i < fractals_used; ++i) {
      const Row pairs = load<Row>(line + i * kWordsOfFractal);
      keys = smaller(
          keys, magnitude_keys(__builtin_shufflevector(pairs, pairs, 0, 1, 2, 3, 4, 5, 6, 7, 0, 1, 2, 3, 4, 5, 6, 7)));
      store(to + row * to_stride + i * kWordsOfRow, pairs << 16 | pairs >> 16);
    }
  }
  return least_exponent_of(keys);
}

uint32_t unpack_right_pairs(const void* fractals, size_t fractals_along, size_t blocks, uint32_t* to,
                            size_t to_stride) {
  const auto* from = static_cast<const uint32_t*>(fractals);
  U16V keys = U16V{} - 1;
  for (size_t depth = 0; depth < fractals_along; ++depth) {
    for (size_t block = 0; block < blocks; ++block, from += kWordsOfFractal) {
      U32V rows[kWordsOfRow];
      transpose_words(from, rows);
      for (size_t row = 0; row < kWordsOfRow; ++row) {
        keys = smaller(keys, magnitude_keys(rows[row]));
        store(to + block * to_stride + (depth * kWordsOfRow + row) * kSide, swap_pairs(rows[row]));
      }
    }
  }
  return least_exponent_of(keys);
}
#endif

}  // namespace
}  // namespace opkit::lanes
