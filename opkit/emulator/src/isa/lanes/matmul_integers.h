/// Lanes of products of small integers. A word of A and of B holds two elements of 16 bits, or four of 8 where the host
/// has an instruction for their dot product. Sums are exact; C saturates once.
#pragma once

#include "isa/lanes/matmul.h"

namespace opkit::lanes {
namespace {

OPKIT_INLINE S32V broadcast_word(uint32_t word) { return (S32V)(U32V{} + word); }

/// Two products of 16-bit integers and their sum, in every word.
struct PairDot {
  using V = S32V;
  OPKIT_INLINE V everywhere(uint32_t word) { return broadcast_word(word); }
  OPKIT_INLINE V add(V sum, V a, V b) {
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
  using V = S32V;
  OPKIT_INLINE V everywhere(uint32_t word) { return broadcast_word(word); }
  OPKIT_INLINE V add(V sum, V a, V b) {
    __asm__("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(a), "v"(b));
    return sum;
  }
};
#endif

OPKIT_INLINE bool any_negative(S32V values) {
#if defined(__AVX512F__)
  return _mm512_movepi32_mask((__m512i)values) != 0;
#elif defined(__AVX2__)
  return _mm256_movemask_ps((__m256)values) != 0;
#elif defined(__SSE2__)
  return _mm_movemask_ps((__m128)values) != 0;
#else
  for (size_t i = 0; i < kFloats; ++i) {
    if (values[i] < 0) return true;
  }
  return false;
#endif
}

OPKIT_INLINE S32V wrapping_sum(S32V a, S32V b) { return (S32V)((U32V)a + (U32V)b); }

OPKIT_INLINE S32V saturating_sum(S32V a, S32V b) {
  const S32V sum = wrapping_sum(a, b);
  const S32V is_over = ((a ^ sum) & (b ^ sum)) >> 31;
  const S32V limit = (a >> 31) ^ INT32_MAX;
  return (sum & ~is_over) | (limit & is_over);
}

/// Of a word: four products of bytes.
constexpr int32_t kLargestDot = 4 * 255 * 128;

template <class Dot>
struct IntegerKernel {
  using V = S32V;

  /// Elements of A that are too large by `a_offset` add that many times the sum of a column.
  template <size_t vectors>
  OPKIT_INLINE void start(const IntegerProduct& p, size_t block, V (&values)[vectors]) {
    for (size_t v = 0; v < vectors; ++v) {
      values[v] = V{};
      if (p.a_offset == 0) continue;
      const uint32_t* b = p.b + block * p.b_stride;
      for (size_t step = 0; step < p.steps; ++step) {
        values[v] = Dot::add(values[v], broadcast_word(0x01010101), load<V>(b + place_in_tile(step, v, p.b_stride)));
      }
      values[v] *= -p.a_offset;
    }
  }

  template <size_t rows, size_t vectors>
  OPKIT_INLINE void tile(const IntegerProduct& p, size_t first_row, size_t block, const V (&start)[vectors]) {
    int32_t* c = p.c + block * p.c_stride + first_row * kSide;
    const int32_t limit = INT32_MAX - static_cast<int32_t>(p.steps) * kLargestDot;
    V sums[rows][vectors];
    V beyond = {};
    for (size_t row = 0; row < rows; ++row) {
      for (size_t v = 0; v < vectors; ++v) {
        const V old = load<V>(c + place_in_tile(row, v, p.c_stride));
        beyond |= (V)(old > limit) | (V)(old < -limit);
        sums[row][v] = wrapping_sum(old, start[v]);
      }
    }
    if (any_negative(beyond)) return saturating_tile<rows>(p, first_row, block, start);
    accumulate<Dot>(sums, p, first_row, block);
    for (size_t row = 0; row < rows; ++row) {
      for (size_t v = 0; v < vectors; ++v) store(c + place_in_tile(row, v, p.c_stride), sums[row][v]);
    }
  }

  /// The same where C may saturate.
  template <size_t rows, size_t vectors>
  __attribute__((noinline)) static void saturating_tile(const IntegerProduct& p, size_t first_row, size_t block,
                                                        const V (&start)[vectors]) {
    int32_t* c = p.c + block * p.c_stride + first_row * kSide;
    V sums[rows][vectors];
    for (size_t row = 0; row < rows; ++row) {
      for (size_t v = 0; v < vectors; ++v) sums[row][v] = start[v];
    }
    accumulate<Dot>(sums, p, first_row, block);
    for (size_t row = 0; row < rows; ++row) {
      for (size_t v = 0; v < vectors; ++v) {
        int32_t* to = c + place_in_tile(row, v, p.c_stride);
        store(to, saturating_sum(load<V>(to), sums[row][v]));
      }
    }
  }
};

template <class Dot>
void multiply_integers(const IntegerProduct& p) {
  multiply<IntegerKernel<Dot>>(p);
}

constexpr void add_integer_matmul(LaneTable& table) {
  table.multiply_pairs = multiply_integers<PairDot>;
#if defined(__AVX512F__)
  table.unpack_left_quads = unpack_left_quads;
  table.multiply_quads = multiply_integers<QuadDot>;
#endif
}

}  // namespace
}  // namespace opkit::lanes
