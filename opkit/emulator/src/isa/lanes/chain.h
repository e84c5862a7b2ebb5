/// Elementwise instructions of floats one after the other on a few vectors at a time, which stay in registers from one
/// to the next.
#pragma once

#include "isa/lanes/elementwise.h"

namespace opkit::lanes {
namespace {

constexpr size_t kChainVectors = 8;
using ChainValues = F32V[kChainVectors];

OPKIT_INLINE void load_all(ChainValues& values, const void* from) {
#pragma GCC unroll 8
  for (size_t u = 0; u < kChainVectors; ++u) values[u] = load<F32V>(static_cast<const char*>(from) + u * sizeof(F32V));
}

OPKIT_INLINE void store_all(void* to, const ChainValues& values) {
#pragma GCC unroll 8
  for (size_t u = 0; u < kChainVectors; ++u) store(static_cast<char*>(to) + u * sizeof(F32V), values[u]);
}

OPKIT_INLINE void make_canonical(ChainValues& values) {
  bool has_nan = false;
#pragma GCC unroll 8
  for (size_t u = 0; u < kChainVectors; u += 2) has_nan |= any_nan(values[u], values[u + 1]);
  if (__builtin_expect(!has_nan, 1)) return;
#pragma GCC unroll 8
  for (size_t u = 0; u < kChainVectors; ++u) values[u] = canonical(values[u]);
}

/// One instruction; its first source is in `values`, where its result goes. What NaN it is shows in memory alone.
template <class Row>
OPKIT_INLINE void chain_row(ChainValues& values, const ChainStep& step, size_t at) {
  if constexpr ((Row::kTypes & type_bits::bit_of(DType::F32)) != 0) {
    const F32V s = Row::kHasScalar ? FormatF32::scalar(step.scalar) : F32V{};
    const uint8_t* second = Row::kSources > 1 ? step.second + at : nullptr;
    const uint8_t* dst = step.dst + at;
#pragma GCC unroll 8
    for (size_t u = 0; u < kChainVectors; ++u) {
      const F32V a = values[u];
      const F32V b = Row::kSources > 1 ? load<F32V>(second + u * sizeof(F32V)) : a;
      const F32V d = Row::kReadsDst ? load<F32V>(dst + u * sizeof(F32V)) : a;
      values[u] = Row::apply(a, b, d, s, F32V{});
    }
  }
}

/// A function of many steps runs in its own lane, in memory: here it would need the registers that the values are in.
OPKIT_INLINE void chain_function(ChainValues& values, Lane lane) {
  char spilled[sizeof(ChainValues)];
  store_all(spilled, values);
  const void* sources[1] = {spilled};
  lane(spilled, sources, nullptr, kChainVectors * kFloats);
  load_all(values, spilled);
}

/// As exp_run: one check for all vectors.
OPKIT_INLINE void chain_exp(ChainValues& values) {
  U32V largest = {};
#pragma GCC unroll 8
  for (size_t u = 0; u < kChainVectors; ++u) {
    const U32V magnitude = (U32V)values[u] & 0x7fffffff;
    largest = magnitude > largest ? magnitude : largest;
  }
  if (__builtin_expect(any_beyond((F32V)largest, kExpUsual), 0)) return chain_function(values, &exp_run);
#pragma GCC unroll 8
  for (size_t u = 0; u < kChainVectors; ++u) values[u] = exp_usual(values[u]);
}

template <class Row>
OPKIT_INLINE void chain_unary(ChainValues& values, const ChainStep& step, size_t at) {
  switch (Row::kOp) {
    case Op::Exp: return chain_exp(values);
    case Op::Ln: return chain_function(values, &run<FormatF32, other::Ln>);
    case Op::Rsqrt: return chain_function(values, &run<FormatF32, other::Rsqrt>);
    default: return chain_row<Row>(values, step, at);
  }
}

size_t run_chain(const ChainStep* steps, size_t step_count, size_t count) {
  constexpr size_t kElements = kChainVectors * kFloats;
  size_t done = 0;
  for (; done + kElements <= count; done += kElements) {
    const size_t at = done * sizeof(float);
    ChainValues values = {};
    for (const ChainStep* step = steps; step != steps + step_count; ++step) {
      if (step->first != nullptr) load_all(values, step->first + at);
      switch (step->op) {
#define VEC_UNARY(name, ...) \
  case Op::name: chain_unary<other::name>(values, *step, at); break;
#define VEC_BINARY(name, ...) \
  case Op::name: chain_row<other::name>(values, *step, at); break;
#define VEC_BINARY_SCALAR VEC_BINARY
#include "opkit/isa/vec_unary.inc"
#include "opkit/isa/vec_binary.inc"
#include "opkit/isa/vec_binary_scalar.inc"
#undef VEC_UNARY
#undef VEC_BINARY
#undef VEC_BINARY_SCALAR
        default: break;
      }
      if (step->is_stored) {
        make_canonical(values);
        store_all(step->dst + at, values);
      }
    }
  }
  return done;
}

constexpr void add_chain(LaneTable& table) { table.run_chain = &run_chain; }

}  // namespace
}  // namespace opkit::lanes
