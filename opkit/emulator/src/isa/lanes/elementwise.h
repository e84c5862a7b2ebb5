/// One lane for each elementwise row and data type, generated from the instruction table.
#pragma once

#include "isa/lanes/formats.h"
#include "isa/lanes/lanes.h"
#include "opkit/isa/arch_rows.h"

namespace opkit::lanes {
namespace {

// The transcendentals differ between halves and floats, so rows are expanded once for each of the two.
namespace f16 {
OPKIT_INLINE F32V exp(F32V a) { return exp_f16(a); }
OPKIT_INLINE F32V ln(F32V a) { return ln_f32(a); }
OPKIT_INLINE F32V rsqrt(F32V a) { return 1.0f / square_root(a); }  // exact enough to round to a half correctly
#include "isa/lanes/rows.inc"
}  // namespace f16

namespace other {
OPKIT_INLINE F32V exp(F32V a) { return exp_f32(a); }
OPKIT_INLINE F32V ln(F32V a) { return ln_f32(a); }
OPKIT_INLINE F32V rsqrt(F32V a) { return rsqrt_f32(a); }
#include "isa/lanes/rows.inc"
}  // namespace other

template <class Format, class Row>
void run(void* dst, const void* const* sources, const uint64_t* scalars, size_t count) {
  using V = typename Format::V;
  constexpr size_t kLanes = Format::kLanes;
  constexpr size_t kUnroll = 2;
  char* to = static_cast<char*>(dst);
  const char* from_a = static_cast<const char*>(sources[0]);
  const char* from_b = Row::kSources > 1 ? static_cast<const char*>(sources[1]) : from_a;
  const V s = Row::kHasScalar ? Format::scalar(scalars[0]) : V{};
  const V t = Row::kHasScalar ? Format::scalar(scalars[1]) : V{};

  size_t i = 0;
  for (; i + kUnroll * kLanes <= count; i += kUnroll * kLanes) {
    V results[kUnroll];
#pragma GCC unroll 2
    for (size_t u = 0; u < kUnroll; ++u) {
      const size_t at = (i + u * kLanes) * Format::kBytes;
      const V a = Format::read(from_a + at);
      const V b = Row::kSources > 1 ? Format::read(from_b + at) : a;
      const V d = Row::kReadsDst ? Format::read(to + at) : a;
      results[u] = Row::apply(a, b, d, s, t);
    }
#pragma GCC unroll 2
    for (size_t u = 0; u < kUnroll; ++u) Format::write(to + (i + u * kLanes) * Format::kBytes, results[u]);
  }
  for (; i < count; i += kLanes) {
    const size_t at = i * Format::kBytes;
    const size_t rest = count - i;
    if (rest >= kLanes) {
      const V a = Format::read(from_a + at);
      const V b = Row::kSources > 1 ? Format::read(from_b + at) : a;
      const V d = Row::kReadsDst ? Format::read(to + at) : a;
      Format::write(to + at, Row::apply(a, b, d, s, t));
      continue;
    }
    const V a = Format::read_partial(from_a + at, rest);
    const V b = Row::kSources > 1 ? Format::read_partial(from_b + at, rest) : a;
    const V d = Row::kReadsDst ? Format::read_partial(to + at, rest) : a;
    Format::write_partial(to + at, Row::apply(a, b, d, s, t), rest);
  }
}

/// As `run`, where the second source is one data block that goes with every block of the first.
template <class Format, class Row>
void run_block(void* dst, const void* const* sources, const uint64_t*, size_t count) {
  using V = typename Format::V;
  constexpr size_t kLanes = Format::kLanes;
  constexpr size_t kBlock = 32;
  constexpr size_t kVectors = kLanes * Format::kBytes >= kBlock ? 1 : kBlock / (kLanes * Format::kBytes);
  char* to = static_cast<char*>(dst);
  const char* from = static_cast<const char*>(sources[0]);
  char twice[2 * kBlock];
  __builtin_memcpy(twice, sources[1], kBlock);
  __builtin_memcpy(twice + kBlock, sources[1], kBlock);
  V block[kVectors];
  for (size_t u = 0; u < kVectors; ++u) block[u] = Format::read(twice + u * kLanes * Format::kBytes);

  size_t i = 0;
  for (; i + kVectors * kLanes <= count; i += kVectors * kLanes) {
#pragma GCC unroll 4
    for (size_t u = 0; u < kVectors; ++u) {
      const size_t at = (i + u * kLanes) * Format::kBytes;
      const V a = Format::read(from + at);
      const V d = Row::kReadsDst ? Format::read(to + at) : a;
      Format::write(to + at, Row::apply(a, block[u], d, V{}, V{}));
    }
  }
  for (size_t u = 0; i < count; ++u, i += kLanes) {
    const size_t at = i * Format::kBytes;
    const size_t rest = count - i < kLanes ? count - i : kLanes;
    const V a = Format::read_partial(from + at, rest);
    const V d = Row::kReadsDst ? Format::read_partial(to + at, rest) : a;
    Format::write_partial(to + at, Row::apply(a, block[u], d, V{}, V{}), rest);
  }
}

/// Exp of floats, four vectors at a time: one check for all four, and no NaN to look for where it holds.
void exp_run(void* dst, const void* const* sources, const uint64_t* scalars, size_t count) {
  constexpr size_t kUnroll = 4;
  const char* from = static_cast<const char*>(sources[0]);
  char* to = static_cast<char*>(dst);
  size_t i = 0;
  for (; i + kUnroll * kFloats <= count; i += kUnroll * kFloats) {
    F32V values[kUnroll];
    U32V largest = {};
#pragma GCC unroll 4
    for (size_t u = 0; u < kUnroll; ++u) {
      values[u] = load<F32V>(from + (i + u * kFloats) * sizeof(float));
      const U32V magnitude = (U32V)values[u] & 0x7fffffff;  // as an integer it grows with the value, NaN above all
      largest = magnitude > largest ? magnitude : largest;
    }
    const bool is_usual = !any_beyond((F32V)largest, kExpUsual);
#pragma GCC unroll 4
    for (size_t u = 0; u < kUnroll; ++u) {
      char* place = to + (i + u * kFloats) * sizeof(float);
      if (__builtin_expect(is_usual, 1)) {
        store(place, exp_usual(values[u]));
      } else {
        FormatF32::write(place, exp_everywhere(values[u]));
      }
    }
  }
  const void* rest[1] = {from + i * sizeof(float)};
  if (i < count) run<FormatF32, other::Exp>(to + i * sizeof(float), rest, scalars, count - i);
}

/// The lanes of a row for one type, or null where no chip accepts the type.
template <class Format, class Row, DType type>
constexpr void add_lanes(LaneTable& table) {
  if constexpr ((Row::kTypes & type_bits::bit_of(type)) != 0) {
    table.elementwise[static_cast<size_t>(Row::kOp)][static_cast<size_t>(type)] = &run<Format, Row>;
    if constexpr (Row::kSources == 2) {
      table.elementwise_block[static_cast<size_t>(Row::kOp)][static_cast<size_t>(type)] = &run_block<Format, Row>;
    }
  }
}

template <class HalfRow, class Row>
constexpr void add_row(LaneTable& table) {
  add_lanes<FormatF16, HalfRow, DType::F16>(table);
  add_lanes<FormatF32, Row, DType::F32>(table);
  add_lanes<FormatS16, Row, DType::S16>(table);
  add_lanes<FormatU16, Row, DType::U16>(table);
  add_lanes<FormatS32, Row, DType::S32>(table);
  add_lanes<FormatU32, Row, DType::U32>(table);
}

constexpr void add_elementwise(LaneTable& table) {
#define OPKIT_ADD_ROW(name, ...) add_row<f16::name, other::name>(table);
#define VEC_UNARY OPKIT_ADD_ROW
#define VEC_BINARY OPKIT_ADD_ROW
#define VEC_BINARY_SCALAR OPKIT_ADD_ROW
#include "opkit/isa/vec_unary.inc"
#include "opkit/isa/vec_binary.inc"
#include "opkit/isa/vec_binary_scalar.inc"
#undef VEC_UNARY
#undef VEC_BINARY
#undef VEC_BINARY_SCALAR
#undef OPKIT_ADD_ROW
  table.elementwise[static_cast<size_t>(Op::Exp)][static_cast<size_t>(DType::F32)] = &exp_run;
}

}  // namespace
}  // namespace opkit::lanes
