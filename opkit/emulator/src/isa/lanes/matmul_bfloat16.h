/// Products of bfloat16 by the host's instruction for two of them, where it gives the bits of two fused multiply-adds.
///
/// It does, the upper elements first, except that it takes subnormal numbers for zero and makes zero of subnormal
/// results. None arise where every nonzero product and every start value is a multiple of 2^-126: so is then each sum.
#pragma once

#include "isa/lanes/matmul.h"

namespace opkit::lanes {
namespace {

#if defined(__AVX512F__)
/// The instruction is chosen at run time, so no flag allows the compiler to use it by itself.
OPKIT_INLINE F32V dot_pairs(F32V sum, U32V a, U32V b) {
  __asm__("vdpbf16ps %2, %1, %0" : "+v"(sum) : "v"(a), "v"(b));
  return sum;
}

struct DotStep {
  using V = F32V;
  OPKIT_INLINE V everywhere(uint32_t pair) { return (V)(U32V{} + pair); }
  OPKIT_INLINE V add(V sum, V a, V b) { return dot_pairs(sum, (U32V)a, (U32V)b); }
};

/// What the instruction stands for.
struct TwoSteps {
  using V = F32V;
  OPKIT_INLINE V everywhere(uint32_t pair) { return (V)(U32V{} + pair); }
  OPKIT_INLINE V add(V sum, V a, V b) {
    const V first = multiply_add((V)((U32V)a & 0xffff0000), (V)((U32V)b & 0xffff0000), sum);
    return multiply_add((V)((U32V)a << 16), (V)((U32V)b << 16), first);
  }
};

/// Below 2^-103 a float may be no multiple of 2^-126. Source: 24 bits of significand.
constexpr uint32_t kLeastStart = (127 - 103) << 23;

struct PairKernel {
  using V = F32V;
  template <size_t vectors>
  OPKIT_INLINE void start(const PairProduct&, size_t, V (&)[vectors]) {}

  template <size_t rows, size_t vectors>
  OPKIT_INLINE void tile(const PairProduct& p, size_t first_row, size_t block, const V (&)[vectors]) {
    float* c = p.c + block * p.c_stride + first_row * kSide;
    V sums[rows][vectors];
    load_tile(c, p.c_stride, sums);
    U32V small = {};
    for (const auto& row : sums) {
      for (const V sum : row) small |= (U32V)(((U32V)sum << 1) - 1 < 2 * kLeastStart - 1);  // zero is not
    }
    if (_mm512_test_epi32_mask((__m512i)small, (__m512i)small) == 0) {
      accumulate<DotStep>(sums, p, first_row, block);
    } else {
      accumulate<TwoSteps>(sums, p, first_row, block);
    }
    store_tile(c, p.c_stride, sums);
  }
};

void multiply_bfloat16_pairs(const PairProduct& p) { multiply<PairKernel>(p); }

/// Whether this host's instruction rounds after each of the two products, to the nearest even, the upper one first.
bool rounds_after_each_product() {
  const auto dot = [](float sum, float upper, float lower) {
    const U32V ones = U32V{} + 0x3f803f80;
    const U32V values = (U32V)broadcast(upper) >> 16 << 16 | (U32V)broadcast(lower) >> 16;
    return dot_pairs(broadcast(sum), values, ones)[0];
  };
  // Unrounded sums would give 2^24 + 2, another order 1.
  return dot(0x1p24f, 1, 1) == 0x1p24f && dot(0x1p24f, 1, -0x1p24f) == 0 && dot(0x1p24f, -0x1p24f, 1) == 1 &&
         dot(0x1p24f, 3, 0) == 0x1p24f + 4;
}
#endif

constexpr void add_bfloat16_matmul([[maybe_unused]] LaneTable& table) {
#if defined(__AVX512F__)
  table.unpack_left_pairs = unpack_left_pairs;
  table.unpack_right_pairs = unpack_right_pairs;
  table.multiply_bfloat16_pairs = multiply_bfloat16_pairs;
  table.rounds_after_each_product = rounds_after_each_product;
#endif
}

}  // namespace
}  // namespace opkit::lanes
