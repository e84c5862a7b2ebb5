/// Lanes of products of small integers. A word of A and of B holds two elements of 16 bits, or four of 8 where the host
/// has an instruction for their dot product. Sums are exact; C saturates once.
#pragma once

#include "isa/lanes/matmul.h"

namespace opkit::lanes {
namespace {

OPKIT_INLINE S32V broadcast_word(uint32_t word) { return (S32V)(U32V{} + word); }

/// Two products of 16-bit integers and their sum, in every word.
struct PairDot {
  OPKIT_INLINE S32V add(S32V sum, S32V a, S32V b) {
#if defined(__AVX512F__)
    return sum + (S32V)_mm512_madd_epi16((__m512i)a, (__m512i)b);
#elif defined(__AVX2__)
    return sum + (S32V)_mm256_madd_epi16((__m256i)a, (__m256i)b);
#elif defined(__SSE2__)
    return sum + (S32V)_mm_madd_epi16((__m128i)a, (__m128i)b);
#else
    return sum + (a >> 16) * (b >> 16) + (S32V)((U32V)a << 16) / 65536 * ((S32V)((U32V)b << 16) / 65536);
#endif
  }
};

#if defined(__AVX512F__)
/// Four products of an unsigned and a signed byte. The instruction is chosen at run time, so no flag allows the
/// compiler to use it by itself.
struct QuadDot {
  OPKIT_INLINE S32V add(S32V sum, S32V a, S32V b) {
    __asm__("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(a), "v"(b));
    return sum;
  }
};
#endif

OPKIT_INLINE S32V saturating_sum(S32V a, S32V b) {
  const S32V sum = (S32V)((U32V)a + (U32V)b);
  const S32V is_over = ((a ^ sum) & (b ^ sum)) >> 31;
  const S32V limit = (a >> 31) ^ INT32_MAX;
  return (sum & ~is_over) | (limit & is_over);
}

/// `rows` rows of `blocks` neighbouring blocks of C, as multiply_tile does with floats.
template <class Dot, size_t rows, size_t blocks>
OPKIT_INLINE void multiply_words(const IntegerProduct& p, const uint32_t* a, const uint32_t* b, int32_t* c,
                                 const S32V* start) {
  constexpr size_t kVectors = blocks * kPartsOfBlock;
  S32V sums[rows][kVectors];
  for (size_t row = 0; row < rows; ++row) {
    for (size_t v = 0; v < kVectors; ++v) sums[row][v] = start[v];
  }
  for (size_t step = 0; step < p.words; ++step) {
    S32V right[kVectors];
    for (size_t v = 0; v < kVectors; ++v) {
      right[v] = load<S32V>(b + v / kPartsOfBlock * p.b_stride + step * kSide + v % kPartsOfBlock * kFloats);
    }
    for (size_t row = 0; row < rows; ++row) {
      const S32V left = broadcast_word(a[row * p.a_stride + step]);
      for (size_t v = 0; v < kVectors; ++v) sums[row][v] = Dot::add(sums[row][v], left, right[v]);
    }
  }
  for (size_t row = 0; row < rows; ++row) {
    for (size_t v = 0; v < kVectors; ++v) {
      int32_t* to = c + v / kPartsOfBlock * p.c_stride + row * kSide + v % kPartsOfBlock * kFloats;
      store(to, saturating_sum(load<S32V>(to), sums[row][v]));
    }
  }
}

template <class Dot, size_t blocks>
OPKIT_INLINE void multiply_integer_columns(const IntegerProduct& p, const uint32_t* b, int32_t* c) {
  constexpr size_t kVectors = blocks * kPartsOfBlock;
  // Elements of A that are too large by `a_offset` add that many times the sum of a column.
  S32V start[kVectors] = {};
  for (size_t v = 0; p.a_offset != 0 && v < kVectors; ++v) {
    const uint32_t* column = b + v / kPartsOfBlock * p.b_stride + v % kPartsOfBlock * kFloats;
    for (size_t step = 0; step < p.words; ++step) {
      start[v] = Dot::add(start[v], broadcast_word(0x01010101), load<S32V>(column + step * kSide));
    }
    start[v] *= -p.a_offset;
  }
  size_t row = 0;
  for (; row + kTileRows <= p.m; row += kTileRows) {
    multiply_words<Dot, kTileRows, blocks>(p, p.a + row * p.a_stride, b, c + row * kSide, start);
  }
  for (; row < p.m; ++row) {
    multiply_words<Dot, 1, blocks>(p, p.a + row * p.a_stride, b, c + row * kSide, start);
  }
}

template <class Dot>
void multiply_integers(const IntegerProduct& p) {
  size_t block = 0;
  for (; block + kTileBlocks <= p.blocks; block += kTileBlocks) {
    multiply_integer_columns<Dot, kTileBlocks>(p, p.b + block * p.b_stride, p.c + block * p.c_stride);
  }
  for (; block < p.blocks; ++block) {
    multiply_integer_columns<Dot, 1>(p, p.b + block * p.b_stride, p.c + block * p.c_stride);
  }
}

constexpr void add_integer_matmul(LaneTable& table) {
  table.multiply_pairs = multiply_integers<PairDot>;
#if defined(__AVX512F__)
  table.multiply_quads = multiply_integers<QuadDot>;
#endif
}

}  // namespace
}  // namespace opkit::lanes
