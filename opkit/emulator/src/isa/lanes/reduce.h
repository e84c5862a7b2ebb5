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

template <size_t... i>
OPKIT_INLINE S32V lane_numbers(Indices<i...>) {
  return S32V{static_cast<int32_t>(i)...};
}

/// How neighbours are joined: `a` is the one in front.
template <class Format>
struct Sum {
  static F32V join(F32V a, F32V b) { return rounded<Format>(a + b); }
};
struct Largest {
  static constexpr float kFirst = -__builtin_inff();
  static F32V join(F32V a, F32V b) { return maximum(a, b); }
};
struct Smallest {
  static constexpr float kFirst = __builtin_inff();
  static F32V join(F32V a, F32V b) { return minimum(a, b); }
};

/// Neighbours of the 2 * kFloats values in `first` and `second`, joined.
template <class Join, size_t... i>
OPKIT_INLINE F32V join_neighbours(F32V first, F32V second, Indices<i...>) {
  return Join::join(__builtin_shufflevector(first, second, (2 * i)...),
                    __builtin_shufflevector(first, second, (2 * i + 1)...));
}
template <class Join>
OPKIT_INLINE F32V join_neighbours(F32V first, F32V second) {
  return join_neighbours<Join>(first, second, typename MakeIndices<kFloats>::Type());
}

/// A vector of 2^levels neighbours each, joined: the whole tree in registers.
template <class Format, class Join, int levels>
OPKIT_INLINE F32V join_tree(const char* from) {
  if constexpr (levels == 0) {
    return Format::read(from);
  } else {
    constexpr size_t kHalfBytes = (size_t{1} << (levels - 1)) * kFloats * Format::kBytes;
    const F32V first = join_tree<Format, Join, levels - 1>(from);
    const F32V second = join_tree<Format, Join, levels - 1>(from + kHalfBytes);
    return join_neighbours<Join>(first, second);
  }
}

constexpr int log2_of(size_t value) { return value == 1 ? 0 : 1 + log2_of(value / 2); }

/// Joins neighbours `levels` times within each of `count` repeats.
template <class Format, class Join, int levels>
void join_run(void* dst, const void* const* sources, const uint64_t*, size_t count) {
  constexpr size_t kLanes = 256 / Format::kBytes;
  constexpr size_t kResults = kLanes >> levels;
  const char* from = static_cast<const char*>(sources[0]);
  char* to = static_cast<char*>(dst);
  // As many repeats as give a vector of results; neighbours of one repeat never meet those of another.
  constexpr size_t kRepeats = (kFloats + kResults - 1) / kResults;
  constexpr size_t kVectors = kRepeats * kResults / kFloats;
  for (; count >= kRepeats; count -= kRepeats) {
    for (size_t i = 0; i < kVectors; ++i) {
      Format::write(to, join_tree<Format, Join, levels>(from));
      from += (size_t{1} << levels) * kFloats * Format::kBytes;
      to += kFloats * Format::kBytes;
    }
  }
  if constexpr (kRepeats > 1) {
    // One repeat alone: what is left of it in one vector, which is joined with itself.
    constexpr int kTogether = log2_of(kLanes / kFloats);
    for (; count > 0; --count) {
      F32V values = join_tree<Format, Join, kTogether>(from);
#pragma GCC unroll 7
      for (int level = kTogether; level < levels; ++level) values = join_neighbours<Join>(values, values);
      Format::write_partial(to, values, kResults);
      from += 256;
      to += kResults * Format::kBytes;
    }
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

/// The last zero of `count` elements; the first element where there is none.
template <class Format>
float last_zero(const char* from, size_t count) {
  constexpr uint32_t kMagnitude = Format::kBytes == 2 ? 0x7fff : 0x7fffffff;
  for (size_t i = count; i > 0; --i) {
    uint32_t bits = 0;
    __builtin_memcpy(&bits, from + (i - 1) * Format::kBytes, Format::kBytes);
    if ((bits & kMagnitude) == 0) return bits == 0 ? 0.0f : -0.0f;
  }
  return Format::read_partial(from, 1)[0];
}

template <class Format, class Join>
void extreme_run(void* dst, const void* const* sources, const uint64_t*, size_t count) {
  const char* from = static_cast<const char*>(sources[0]);
  const F32V none = broadcast(Join::kFirst);
  F32V best = none;
  size_t i = 0;
  for (; i + kFloats <= count; i += kFloats) best = Join::join(best, Format::read(from + i * Format::kBytes));
  if (i < count) {
    const F32V rest = Format::read_partial(from + i * Format::kBytes, count - i);
    best = Join::join(
        best, lane_numbers(typename MakeIndices<kFloats>::Type()) < static_cast<int32_t>(count - i) ? rest : none);
  }
#pragma GCC unroll 4
  for (size_t lanes = kFloats; lanes > 1; lanes /= 2) best = join_neighbours<Join>(best, best);
  // Zeros are equal, whatever their signs: the last one is the extreme, as it is where neighbours are joined.
  if (best[0] == 0.0f) best = broadcast(last_zero<Format>(from, count));
  Format::write_partial(static_cast<char*>(dst), best, 1);
}

template <class Format>
constexpr void add_reduces_of(LaneTable& table, DType type) {
  constexpr int kBlockLevels = Format::kBytes == 2 ? 4 : 3;
  constexpr int kRepeatLevels = kBlockLevels + 3;
  const size_t column = static_cast<size_t>(type);
  table.sum_pairs[column] = &join_run<Format, Sum<Format>, 1>;
  table.sum_blocks[column] = &join_run<Format, Sum<Format>, kBlockLevels>;
  table.sum_repeats[column] = &join_run<Format, Sum<Format>, kRepeatLevels>;
  table.sum_in_order[column] = &sum_in_order_run<Format>;
  table.maximum[column] = &extreme_run<Format, Largest>;
  table.minimum[column] = &extreme_run<Format, Smallest>;
  table.maximum_blocks[column] = &join_run<Format, Largest, kBlockLevels>;
  table.minimum_blocks[column] = &join_run<Format, Smallest, kBlockLevels>;
  table.maximum_repeats[column] = &join_run<Format, Largest, kRepeatLevels>;
  table.minimum_repeats[column] = &join_run<Format, Smallest, kRepeatLevels>;
}

constexpr void add_reduces(LaneTable& table) {
  add_reduces_of<FormatF16>(table, DType::F16);
  add_reduces_of<FormatF32>(table, DType::F32);
}

}  // namespace
}  // namespace opkit::lanes
