/// Lanes of reductions. Sums are binary trees of neighbours, each addition rounded to the element's type. Source:
/// Ascend C API, ReduceDataBlock, key features.
#pragma once

#include "isa/lanes/formats.h"
#include "isa/lanes/lanes.h"

namespace opkit::lanes {
namespace {

template <class Format>
OPKIT_INLINE F32V rounded(F32V value) {
  return Format::kBytes == 2 ? widen_half(narrow_half(value)) : value;
}

template <size_t... i>
struct Indices {};
template <size_t count, size_t... i>
struct MakeIndices : MakeIndices<count - 1, count - 1, i...> {};
template <size_t... i>
struct MakeIndices<0, i...> {
  using Type = Indices<i...>;
};

/// Sums of neighbours of the 2 * kFloats values in `first` and `second`.
template <size_t... i>
OPKIT_INLINE F32V add_neighbours(F32V first, F32V second, Indices<i...>) {
  return __builtin_shufflevector(first, second, (2 * i)...) + __builtin_shufflevector(first, second, (2 * i + 1)...);
}

/// values[i] = values[2i] + values[2i + 1] for i < count / 2. `values` has room for kFloats beyond count.
template <class Format>
OPKIT_INLINE void halve(float* values, size_t count) {
  for (size_t i = 0; i < count; i += 2 * kFloats) {
    const F32V first = load<F32V>(values + i);
    const F32V second = load<F32V>(values + i + kFloats);
    store(values + i / 2, rounded<Format>(add_neighbours(first, second, typename MakeIndices<kFloats>::Type())));
  }
}

template <class Format>
OPKIT_INLINE void write_values(char* to, const float* values, size_t count) {
  size_t i = 0;
  for (; i + kFloats <= count; i += kFloats) Format::write(to + i * Format::kBytes, load<F32V>(values + i));
  if (i < count) Format::write_partial(to + i * Format::kBytes, load<F32V>(values + i), count - i);
}

/// A vector of sums of 2^levels neighbours each: the whole tree in registers.
template <class Format, int levels>
OPKIT_INLINE F32V sum_tree(const char* from) {
  if constexpr (levels == 0) {
    return Format::read(from);
  } else {
    constexpr size_t kHalfBytes = (size_t{1} << (levels - 1)) * kFloats * Format::kBytes;
    const F32V first = sum_tree<Format, levels - 1>(from);
    const F32V second = sum_tree<Format, levels - 1>(from + kHalfBytes);
    return rounded<Format>(add_neighbours(first, second, typename MakeIndices<kFloats>::Type()));
  }
}

/// Adds neighbours `levels` times within each of `count` repeats.
template <class Format, int levels>
void sum_run(void* dst, const void* const* sources, const uint64_t*, size_t count) {
  constexpr size_t kLanes = 256 / Format::kBytes;
  constexpr size_t kResults = kLanes >> levels;
  const char* from = static_cast<const char*>(sources[0]);
  char* to = static_cast<char*>(dst);
  // As many repeats as give a vector of results; neighbours of one repeat never meet those of another.
  constexpr size_t kRepeats = (kFloats + kResults - 1) / kResults;
  constexpr size_t kVectors = kRepeats * kResults / kFloats;
  for (; count >= kRepeats; count -= kRepeats) {
    for (size_t i = 0; i < kVectors; ++i) {
      Format::write(to, sum_tree<Format, levels>(from));
      from += (size_t{1} << levels) * kFloats * Format::kBytes;
      to += kFloats * Format::kBytes;
    }
  }
  alignas(64) float values[128 + 2 * kFloats] = {};
  for (size_t repeat = 0; repeat < count; ++repeat) {
    for (size_t i = 0; i < kLanes; i += kFloats) store(values + i, Format::read(from + i * Format::kBytes));
#pragma GCC unroll 7
    for (int level = 0; level < levels; ++level) halve<Format>(values, kLanes >> level);
    write_values<Format>(to, values, kResults);
    from += 256;
    to += kResults * Format::kBytes;
  }
}

/// The sum of `count` elements, one after the other, each addition rounded.
template <class Format>
void sum_in_order_run(void* dst, const void* const* sources, const uint64_t*, size_t count) {
  const char* from = static_cast<const char*>(sources[0]);
  F32V sum = Format::read_partial(from, 1);
  for (size_t i = 1; i < count; ++i) {
    sum = rounded<Format>(sum + Format::read_partial(from + i * Format::kBytes, 1));
  }
  Format::write_partial(static_cast<char*>(dst), sum, 1);
}

template <class Format, bool is_maximum>
void extreme_run(void* dst, const void* const* sources, const uint64_t*, size_t count) {
  const char* from = static_cast<const char*>(sources[0]);
  const auto better = [](F32V a, F32V b)
                          __attribute__((always_inline)) { return is_maximum ? maximum(a, b) : minimum(a, b); };
  F32V best = broadcast(is_maximum ? -__builtin_inff() : __builtin_inff());
  size_t i = 0;
  for (; i + kFloats <= count; i += kFloats) best = better(best, Format::read(from + i * Format::kBytes));
  for (; i < count; ++i) {
    best = better(best, broadcast(Format::read_partial(from + i * Format::kBytes, 1)[0]));
  }
  for (size_t lane = 1; lane < kFloats; ++lane) best = better(best, broadcast(best[lane]));
  Format::write_partial(static_cast<char*>(dst), best, 1);
}

template <class Format>
constexpr void add_reduces_of(LaneTable& table, DType type) {
  constexpr int kBlockLevels = Format::kBytes == 2 ? 4 : 3;
  const size_t column = static_cast<size_t>(type);
  table.sum_pairs[column] = &sum_run<Format, 1>;
  table.sum_blocks[column] = &sum_run<Format, kBlockLevels>;
  table.sum_repeats[column] = &sum_run<Format, kBlockLevels + 3>;
  table.sum_in_order[column] = &sum_in_order_run<Format>;
  table.maximum[column] = &extreme_run<Format, true>;
  table.minimum[column] = &extreme_run<Format, false>;
}

constexpr void add_reduces(LaneTable& table) {
  add_reduces_of<FormatF16>(table, DType::F16);
  add_reduces_of<FormatF32>(table, DType::F32);
}

}  // namespace
}  // namespace opkit::lanes
