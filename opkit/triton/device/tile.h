/// What kernels of Triton programs are made of beside single instructions: tiles of up to five dimensions, packed, row
/// after row, in UB; boxes of global memory; masks of a byte an element.
#pragma once
#include "kernel_operator.h"

// What the toolkit's functions take beside their operands: the line that calls, which faults and profiles name.
#ifdef OPKIT_HERE
#define TILE_HERE , OPKIT_HERE
#define TILE_AT , where
#else
#define TILE_HERE
#define TILE_AT
#endif

namespace opkit_tile {

using namespace AscendC;

/// In bytes: what a data block of UB holds, and what Compare reads in multiples of.
constexpr int64_t kBlock = 32;
constexpr int64_t kVector = 256;

__aicore__ inline void barrier() { PipeBarrier<PIPE_ALL>(); }

__aicore__ inline float to_f16(float x) { return static_cast<float>(static_cast<half>(x)); }
__aicore__ inline float to_bf16(float x) { return ToFloat(ToBfloat16(x)); }

__aicore__ inline int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
__aicore__ inline int64_t most(int64_t a, int64_t b) { return a > b ? a : b; }
__aicore__ inline int64_t floor_div(int64_t a, int64_t b) { return a / b - ((a % b != 0) && ((a < 0) != (b < 0))); }
__aicore__ inline int64_t ceil_div(int64_t a, int64_t b) { return -floor_div(-a, b); }
__aicore__ inline int64_t round_up(int64_t a, int64_t b) { return (a + b - 1) / b * b; }

/// Whole numbers of floats as a Cast that truncates and saturates gives them, zero for NaN.
__aicore__ inline int64_t to_integer(float x) {
  if (x != x) return 0;
  if (x >= 9223372036854775808.0f) return INT64_MAX;
  if (x <= -9223372036854775808.0f) return INT64_MIN;
  return static_cast<int64_t>(x);
}
template <typename T>
__aicore__ inline T narrow(float x) {
  if (sizeof(T) == 4) {
    if (x != x) return 0;
    if (x >= 2147483648.0f) return static_cast<T>(INT32_MAX);
    if (x <= -2147483648.0f) return static_cast<T>(INT32_MIN);
  }
  return static_cast<T>(to_integer(x));
}
__aicore__ inline uint64_t to_unsigned(float x) {
  if (!(x > 0)) return 0;
  return x >= 18446744073709551616.0f ? UINT64_MAX : static_cast<uint64_t>(x);
}

/// Division as the chip's scalar unit must not see it: a zero divisor gives zero, the least number by -1 itself.
template <typename T>
__aicore__ inline T quotient(T a, T b) {
  if (b == 0) return 0;
  if (b == static_cast<T>(-1)) return static_cast<T>(0 - static_cast<uint64_t>(a));
  return static_cast<T>(a / b);
}
template <typename T>
__aicore__ inline T remainder(T a, T b) {
  if (b == 0 || b == static_cast<T>(-1)) return 0;
  return static_cast<T>(a % b);
}
template <typename T>
__aicore__ inline T quotient_unsigned(T a, T b) {
  return b == 0 ? T(0) : static_cast<T>(a / b);
}
template <typename T>
__aicore__ inline T remainder_unsigned(T a, T b) {
  return b == 0 ? T(0) : static_cast<T>(a % b);
}
template <typename T, typename U>
__aicore__ inline T shift_left(T a, U b) {
  return static_cast<uint64_t>(b) >= sizeof(T) * 8 ? T(0) : static_cast<T>(static_cast<uint64_t>(a) << b);
}
template <typename T, typename U>
__aicore__ inline T shift_right(T a, U b) {
  if (static_cast<uint64_t>(b) >= sizeof(T) * 8) return a < 0 ? T(-1) : T(0);
  return static_cast<T>(a >> b);
}
__aicore__ inline uint64_t high_half(uint64_t a, uint64_t b, int bits) {
  if (bits == 32) return (a * b) >> 32;
  const uint64_t a0 = a & 0xffffffffu, a1 = a >> 32, b0 = b & 0xffffffffu, b1 = b >> 32;
  const uint64_t middle = ((a0 * b0) >> 32) + ((a1 * b0) & 0xffffffffu) + ((a0 * b1) & 0xffffffffu);
  return a1 * b1 + ((a1 * b0) >> 32) + ((a0 * b1) >> 32) + (middle >> 32);
}

/// What atomic_cas compares: bits.
template <typename T>
__aicore__ inline bool is_same(T a, T b) {
  return a == b;
}
__aicore__ inline bool is_same(float a, float b) {
  union {
    float value;
    uint32_t bits;
  } first = {a}, second = {b};
  return first.bits == second.bits;
}

/// Scalars of 16-bit floats are floats that hold such a value; masks are bool.
template <typename T>
__aicore__ inline auto get(const LocalTensor<T>& tile, int64_t at) {
  if constexpr (std::is_same<T, half>::value) {
    return static_cast<float>(tile.GetValue(at));
  } else if constexpr (std::is_same<T, bfloat16_t>::value) {
    return ToFloat(tile.GetValue(at));
  } else if constexpr (std::is_same<T, uint8_t>::value) {
    return tile.GetValue(at) != 0;
  } else {
    return tile.GetValue(at);
  }
}
template <typename T, typename V>
__aicore__ inline T stored(V value) {
  if constexpr (std::is_same<T, bfloat16_t>::value) {
    return ToBfloat16(static_cast<float>(value));
  } else if constexpr (std::is_same<T, uint8_t>::value) {
    return static_cast<uint8_t>(value ? 1 : 0);
  } else {
    return static_cast<T>(value);
  }
}
template <typename T, typename V>
__aicore__ inline void set(const LocalTensor<T>& tile, int64_t at, V value) {
  tile.SetValue(at, stored<T>(value));
}

template <typename T>
__aicore__ inline GlobalTensor<T> memory(int64_t address) {
  GlobalTensor<T> tensor;
  tensor.SetGlobalBuffer(reinterpret_cast<__gm__ T*>(address));
  return tensor;
}
/// One element of global memory. A kernel that writes too drops what its scalar unit's cache holds of it first.
template <typename T, bool is_written>
__aicore__ inline auto fetch(int64_t address TILE_HERE) {
  const GlobalTensor<T> source = memory<T>(address);
  if constexpr (is_written) DataCacheCleanAndInvalid<T, CacheLine::SINGLE_CACHE_LINE, DcciDst::CACHELINE_OUT>(source);
  if constexpr (std::is_same<T, half>::value) {
    return static_cast<float>(source.GetValue(0 TILE_AT));
  } else if constexpr (std::is_same<T, bfloat16_t>::value) {
    return ToFloat(source.GetValue(0 TILE_AT));
  } else {
    return source.GetValue(0 TILE_AT);
  }
}

template <typename T>
__aicore__ inline void fill(const LocalTensor<T>& tile, T value, int64_t count) {
  if constexpr (sizeof(T) == 1) {
    const uint16_t byte = static_cast<uint8_t>(value);
    Duplicate(tile.template ReinterpretCast<int16_t>(), static_cast<int16_t>(byte | byte << 8),
              static_cast<int32_t>((count + 1) / 2));
  } else if constexpr (sizeof(T) == 8) {
    const int64_t word = static_cast<int64_t>(value);
    if (word == 0 || word == -1) {
      Duplicate(tile.template ReinterpretCast<int32_t>(), static_cast<int32_t>(word), static_cast<int32_t>(count * 2));
    } else {
      barrier();
      for (int64_t i = 0; i < count; ++i) tile.SetValue(i, value);
      barrier();
    }
  } else {
    Duplicate(tile, value, static_cast<int32_t>(count));
  }
}

/// tile[i] = base + sum of coefficient * index, over the packed indices of `extent`.
template <typename T, int R>
__aicore__ inline void ramp(const LocalTensor<T>& tile, int64_t base, const int64_t (&coefficient)[R],
                            const int64_t (&extent)[R]) {
  int64_t count = 1;
  for (int d = 0; d < R; ++d) count *= extent[d];
  if constexpr (R == 1 && std::is_same<T, int32_t>::value) {
    CreateVecIndex(tile, 0, static_cast<uint32_t>(count));
    PipeBarrier<PIPE_V>();
    Muls(tile, tile, static_cast<int32_t>(coefficient[0]), static_cast<int32_t>(count));
    PipeBarrier<PIPE_V>();
    Adds(tile, tile, static_cast<int32_t>(base), static_cast<int32_t>(count));
  } else {
    barrier();
    for (int64_t i = 0; i < count; ++i) {
      int64_t rest = i, value = base;
      for (int d = R - 1; d >= 0; --d) {
        value += rest % extent[d] * coefficient[d];
        rest /= extent[d];
      }
      tile.SetValue(i, static_cast<T>(value));
    }
    barrier();
  }
}

/// Calls `move(r, at)` for every row r of a tile, with where it lies at strides from `first` on.
template <int R, typename Move>
__aicore__ inline void each_row(int64_t first, const int64_t (&stride)[R], const int64_t (&extent)[R], Move move) {
  int64_t rows = 1;
  for (int d = 0; d < R - 1; ++d) rows *= extent[d];
  barrier();
  for (int64_t r = 0; r < rows; ++r) {
    int64_t rest = r, at = first;
    for (int d = R - 2; d >= 0; --d) {
      at += rest % extent[d] * stride[d];
      rest /= extent[d];
    }
    move(r, at);
  }
  barrier();
}

/// Whether `count` elements from one place to another are whole blocks at both.
template <typename T>
__aicore__ inline bool are_blocks(int64_t from, int64_t to, int64_t count) {
  return (from | to | count) * sizeof(T) % kBlock == 0;
}

/// tile = source read at strides, in elements: broadcast along strides of zero, transposed by others.
template <typename T, int R>
__aicore__ inline void spread(const LocalTensor<T>& tile, const LocalTensor<T>& source, int64_t first,
                              const int64_t (&stride)[R], const int64_t (&extent)[R]) {
  const int64_t row = extent[R - 1], step = stride[R - 1];
  each_row<R>(first, stride, extent, [&](int64_t r, int64_t from) {
    const int64_t to = r * row;
    if (step == 1 && are_blocks<T>(from, to, row)) {
      DataCopy(tile[to], source[from], static_cast<uint32_t>(row));
    } else if (step == 0 && to * sizeof(T) % kBlock == 0 && (sizeof(T) == 2 || sizeof(T) == 4)) {
      const T value = source.GetValue(from);
      if constexpr (sizeof(T) == 2 || sizeof(T) == 4) Duplicate(tile[to], value, static_cast<int32_t>(row));
    } else {
      for (int64_t i = 0; i < row; ++i) tile.SetValue(to + i, source.GetValue(from + i * step));
    }
  });
}

/// tile = source written at strides, in elements, from `first` on; the rest of the tile stays.
template <typename T, int R>
__aicore__ inline void place(const LocalTensor<T>& tile, const LocalTensor<T>& source, int64_t first,
                             const int64_t (&stride)[R], const int64_t (&extent)[R]) {
  const int64_t row = extent[R - 1], step = stride[R - 1];
  each_row<R>(first, stride, extent, [&](int64_t r, int64_t to) {
    const int64_t from = r * row;
    if (step == 1 && are_blocks<T>(from, to, row)) {
      DataCopy(tile[to], source[from], static_cast<uint32_t>(row));
    } else {
      for (int64_t i = 0; i < row; ++i) tile.SetValue(to + i * step, source.GetValue(from + i));
    }
  });
}

/// A part of a strided tensor of global memory; everything in elements.
template <int R>
struct Box {
  int64_t extent[R];
  int64_t stride[R];
  int64_t low[R];
  int64_t high[R];

  __aicore__ inline bool clip() {
    bool is_whole = true;
    for (int d = 0; d < R; ++d) {
      low[d] = most(low[d], 0);
      high[d] = least(high[d], extent[d]);
      if (high[d] <= low[d]) high[d] = low[d];
      is_whole = is_whole && low[d] == 0 && high[d] == extent[d];
    }
    return is_whole;
  }
  __aicore__ inline bool is_empty() const {
    for (int d = 0; d < R; ++d)
      if (high[d] <= low[d]) return true;
    return false;
  }
  /// Joins dimensions that lie one after the other, so that what is contiguous becomes long rows.
  __aicore__ inline int merge() {
    int rank = 0;
    for (int d = 0; d < R; ++d) {
      if (extent[d] == 1 && !(rank == 0 && d == R - 1)) continue;
      const bool is_whole = low[d] == 0 && high[d] == extent[d];
      if (rank > 0 && is_whole && stride[rank - 1] == stride[d] * extent[d]) {
        low[rank - 1] *= extent[d];
        high[rank - 1] *= extent[d];
        extent[rank - 1] *= extent[d];
        stride[rank - 1] = stride[d];
      } else {
        low[rank] = low[d];
        high[rank] = high[d];
        extent[rank] = extent[d];
        stride[rank] = stride[d];
        ++rank;
      }
    }
    if (rank == 0) rank = 1;
    return rank;
  }
  /// Elements before row number `row` of the box's rows, in global memory and in the packed tile.
  __aicore__ inline void find(int rank, int64_t row, int64_t& outside, int64_t& inside) const {
    outside = low[rank - 1] * stride[rank - 1];
    inside = low[rank - 1];
    int64_t pitch = extent[rank - 1];
    for (int d = rank - 2; d >= 0; --d) {
      const int64_t length = high[d] - low[d];
      const int64_t index = low[d] + row % length;
      row /= length;
      outside += index * stride[d];
      inside += index * pitch;
      pitch *= extent[d];
    }
  }
  __aicore__ inline int64_t rows(int rank) const {
    int64_t count = 1;
    for (int d = 0; d < rank - 1; ++d) count *= high[d] - low[d];
    return count;
  }
};

constexpr int64_t kMostBlocks = 4095;
constexpr int64_t kMostBytes = 2097120;

/// Rows of a box that one instruction moves.
struct Bursts {
  uint16_t count;
  /// Bytes between two rows in global memory.
  uint32_t gap;
  /// Blocks of 32 bytes between two rows in the tile.
  uint32_t space;
};

/// Returns the rows along a merged box's last axis but one; one row, where these do not lie as one instruction takes.
template <typename T, int R>
__aicore__ inline Bursts bursts_of(const Box<R>& box, int rank) {
  const int last = rank - 1;
  if (rank < 2) return {1, 0, 0};
  const int64_t size = sizeof(T), length = box.high[last] - box.low[last];
  const int64_t count = box.high[last - 1] - box.low[last - 1];
  const int64_t gap = (box.stride[last - 1] - length) * size;
  const int64_t space = (box.extent[last] * size - round_up(length * size, kBlock)) / kBlock;
  if (gap < 0 || gap > UINT32_MAX || count > kMostBlocks || space < 0 || space > UINT16_MAX) return {1, 0, 0};
  return {static_cast<uint16_t>(count), static_cast<uint32_t>(gap), static_cast<uint32_t>(space)};
}

/// Whether instructions move whole rows of a merged box: each is one run of memory, and begins with a block of the
/// tile.
template <typename T, int R>
__aicore__ inline bool moves_rows(const Box<R>& box, int rank) {
  const int last = rank - 1;
  const int64_t length = box.high[last] - box.low[last], bytes = length * sizeof(T);
  const bool are_blocks = box.rows(rank) == 1 || box.extent[last] * sizeof(T) % kBlock == 0;
  const bool is_packed = are_blocks && box.low[last] * sizeof(T) % kBlock == 0;
  return is_packed && (box.stride[last] == 1 || length == 1) && bytes <= kMostBytes;
}

/// Reads a box into a packed tile; the rest of the tile becomes `other`.
template <typename T, bool is_written, int R>
__aicore__ inline void load_box(const LocalTensor<T>& tile, int64_t address, Box<R> box, T other TILE_HERE) {
  int64_t count = 1;
  for (int d = 0; d < R; ++d) count *= box.extent[d];
  if (!box.clip()) {
    fill(tile, other, count);
    barrier();
  }
  if (box.is_empty()) return;
  const int rank = box.merge();
  const int last = rank - 1;
  const int64_t length = box.high[last] - box.low[last];
  const int64_t rows = box.rows(rank), bytes = length * sizeof(T);
  const bool is_padded = bytes % kBlock == 0 || sizeof(T) < 8;
  if (is_padded && moves_rows<T>(box, rank)) {
    const uint8_t padding = static_cast<uint8_t>((round_up(bytes, kBlock) - bytes) / sizeof(T));
    int64_t outside, inside;
    if constexpr (sizeof(T) == 8) {
      const DataCopyPadExtParams<int32_t> pad(false, 0, 0, 0);
      const DataCopyExtParams shape(1, static_cast<uint32_t>(bytes), 0, 0, 0);
      for (int64_t row = 0; row < rows; ++row) {
        box.find(rank, row, outside, inside);
        const int64_t at = address + outside * static_cast<int64_t>(sizeof(T));
        DataCopyPad(tile[inside].template ReinterpretCast<int32_t>(), memory<int32_t>(at), shape, pad TILE_AT);
      }
    } else {
      const DataCopyPadExtParams<T> pad(padding != 0, 0, padding, other);
      const Bursts bursts = bursts_of<T>(box, rank);
      const DataCopyExtParams shape(bursts.count, static_cast<uint32_t>(bytes), bursts.gap, bursts.space, 0);
      for (int64_t row = 0; row < rows; row += bursts.count) {
        box.find(rank, row, outside, inside);
        DataCopyPad(tile[inside], memory<T>(address + outside * static_cast<int64_t>(sizeof(T))), shape, pad TILE_AT);
      }
    }
  } else {
    barrier();
    for (int64_t row = 0; row < rows; ++row) {
      int64_t outside, inside;
      box.find(rank, row, outside, inside);
      for (int64_t i = 0; i < length; ++i) {
        const int64_t at = address + (outside + i * box.stride[last]) * static_cast<int64_t>(sizeof(T));
        set(tile, inside + i, fetch<T, is_written>(at TILE_AT));
      }
    }
  }
}

/// Writes one element, through a block of UB: the scalar unit's cache would write its neighbours back.
template <typename T>
__aicore__ inline void put(int64_t address, T value, const LocalTensor<T>& stage TILE_HERE) {
  barrier();
  stage.SetValue(0, value TILE_AT);
  barrier();
  const DataCopyExtParams one(1, sizeof(T), 0, 0, 0);
  if constexpr (sizeof(T) == 8) {
    DataCopyPad(memory<int32_t>(address), stage.template ReinterpretCast<int32_t>(), one TILE_AT);
  } else {
    DataCopyPad(memory<T>(address), stage, one TILE_AT);
  }
  barrier();
}

/// Writes a packed tile's part into a box.
template <typename T, int R>
__aicore__ inline void store_box(int64_t address, const LocalTensor<T>& tile, Box<R> box,
                                 const LocalTensor<T>& stage TILE_HERE) {
  box.clip();
  if (box.is_empty()) return;
  const int rank = box.merge();
  const int last = rank - 1;
  const int64_t length = box.high[last] - box.low[last];
  const int64_t rows = box.rows(rank), bytes = length * sizeof(T);
  int64_t outside, inside;
  if (moves_rows<T>(box, rank)) {
    const Bursts bursts = bursts_of<T>(box, rank);
    const DataCopyExtParams shape(bursts.count, static_cast<uint32_t>(bytes), bursts.space, bursts.gap, 0);
    for (int64_t row = 0; row < rows; row += bursts.count) {
      box.find(rank, row, outside, inside);
      const int64_t at = address + outside * static_cast<int64_t>(sizeof(T));
      if constexpr (sizeof(T) == 8) {
        DataCopyPad(memory<int32_t>(at), tile[inside].template ReinterpretCast<int32_t>(), shape TILE_AT);
      } else {
        DataCopyPad(memory<T>(at), tile[inside], shape TILE_AT);
      }
    }
  } else {
    barrier();
    for (int64_t row = 0; row < rows; ++row) {
      box.find(rank, row, outside, inside);
      for (int64_t i = 0; i < length; ++i) {
        const int64_t at = address + (outside + i * box.stride[last]) * static_cast<int64_t>(sizeof(T));
        put(at, tile.GetValue(inside + i TILE_AT), stage TILE_AT);
      }
    }
  }
}

/// How many bytes the masks below work in, for `count` elements.
constexpr int64_t mask_space(int64_t count) {
  return 2 * ((2 * count + kVector - 1) / kVector * kVector) + ((count + 7) / 8 + kVector - 1) / kVector * kVector;
}
template <typename T>
__aicore__ inline uint32_t compared(int64_t count) {
  return static_cast<uint32_t>(round_up(count * sizeof(T), kVector) / sizeof(T));
}
struct MaskSpace {
  LocalTensor<half> first, second;
  LocalTensor<uint8_t> bits;

  __aicore__ inline MaskSpace(const LocalTensor<uint8_t>& space, int64_t count) {
    const int64_t halves = round_up(2 * count, kVector);
    first = space.template ReinterpretCast<half>();
    second = space[halves].template ReinterpretCast<half>();
    bits = space[2 * halves];
  }
};

/// A mask's bytes from comparison bits.
__aicore__ inline void bytes_of_bits(const LocalTensor<uint8_t>& mask, MaskSpace& space, int64_t count,
                                     bool is_inverse) {
  Duplicate(space.first, static_cast<half>(is_inverse ? 0.0f : 1.0f), static_cast<int32_t>(count));
  PipeBarrier<PIPE_V>();
  Select(space.second, space.bits, space.first, static_cast<half>(is_inverse ? 1.0f : 0.0f),
         SELMODE::VSEL_TENSOR_SCALAR_MODE, static_cast<uint32_t>(count));
  PipeBarrier<PIPE_V>();
  Cast(mask, space.second, RoundMode::CAST_RINT, static_cast<uint32_t>(count));
}
template <typename T>
__aicore__ inline void compare(const LocalTensor<uint8_t>& mask, const LocalTensor<T>& a, const LocalTensor<T>& b,
                               CMPMODE mode, bool is_inverse, const LocalTensor<uint8_t>& work, int64_t count) {
  MaskSpace space(work, count);
  Compare(space.bits, a, b, mode, compared<T>(count));
  PipeBarrier<PIPE_V>();
  bytes_of_bits(mask, space, count, is_inverse);
}
/// a <= b, or a >= b, of whole numbers, for which the chip compares equality only.
__aicore__ inline void compare_order(const LocalTensor<uint8_t>& mask, const LocalTensor<int32_t>& a,
                                     const LocalTensor<int32_t>& b, const LocalTensor<int32_t>& most, bool is_inverse,
                                     const LocalTensor<uint8_t>& work, int64_t count) {
  Max(most, a, b, static_cast<int32_t>(count));
  PipeBarrier<PIPE_V>();
  compare(mask, most, b, CMPMODE::EQ, is_inverse, work, count);
}
/// tile = mask ? a : b
template <typename T>
__aicore__ inline void choose(const LocalTensor<T>& tile, const LocalTensor<uint8_t>& mask, const LocalTensor<T>& a,
                              const LocalTensor<T>& b, const LocalTensor<uint8_t>& work, int64_t count) {
  MaskSpace space(work, count);
  Cast(space.first, mask, RoundMode::CAST_NONE, static_cast<uint32_t>(count));
  PipeBarrier<PIPE_V>();
  CompareScalar(space.bits, space.first, static_cast<half>(0), CMPMODE::NE, compared<half>(count));
  PipeBarrier<PIPE_V>();
  Select(tile, space.bits, a, b, SELMODE::VSEL_TENSOR_TENSOR_MODE, static_cast<uint32_t>(count));
}
/// What is a number of a where b is none, and the other way round: maxnum and minnum of IEEE 754.
template <typename T>
__aicore__ inline void mend(const LocalTensor<T>& tile, const LocalTensor<T>& a, const LocalTensor<T>& b,
                            const LocalTensor<uint8_t>& bits, int64_t count) {
  PipeBarrier<PIPE_V>();
  Compare(bits, a, a, CMPMODE::EQ, compared<T>(count));
  PipeBarrier<PIPE_V>();
  Select(tile, bits, tile, b, SELMODE::VSEL_TENSOR_TENSOR_MODE, static_cast<uint32_t>(count));
  PipeBarrier<PIPE_V>();
  Compare(bits, b, b, CMPMODE::EQ, compared<T>(count));
  PipeBarrier<PIPE_V>();
  Select(tile, bits, tile, a, SELMODE::VSEL_TENSOR_TENSOR_MODE, static_cast<uint32_t>(count));
}

enum class Fold { Add, Max, Min };

template <typename T, Fold fold>
__aicore__ inline void combine(const LocalTensor<T>& to, const LocalTensor<T>& a, const LocalTensor<T>& b,
                               int64_t count) {
  if constexpr (fold == Fold::Add) {
    Add(to, a, b, static_cast<int32_t>(count));
  } else if constexpr (fold == Fold::Max) {
    Max(to, a, b, static_cast<int32_t>(count));
  } else {
    Min(to, a, b, static_cast<int32_t>(count));
  }
  PipeBarrier<PIPE_V>();
}
/// to[o][i] = the fold of source[o][l][i] over l; rows of whole blocks.
template <typename T, Fold fold>
__aicore__ inline void fold_rows(const LocalTensor<T>& to, const LocalTensor<T>& source, int64_t outer, int64_t length,
                                 int64_t inner) {
  for (int64_t o = 0; o < outer; ++o) {
    const LocalTensor<T> row = to[o * inner];
    Adds(row, source[o * length * inner], T(0), static_cast<int32_t>(inner));
    PipeBarrier<PIPE_V>();
    for (int64_t l = 1; l < length; ++l) combine<T, fold>(row, row, source[(o * length + l) * inner], inner);
  }
}
/// to[o] = the fold of source[o][l] over l: a row's second half, whole blocks before it, into its first, the last block
/// by the scalar unit. Rows are whole blocks, or there is one.
template <typename T, Fold fold>
__aicore__ inline void fold_halves(const LocalTensor<T>& to, const LocalTensor<T>& source, const LocalTensor<T>& work,
                                   int64_t outer, int64_t length) {
  constexpr int64_t block = kBlock / sizeof(T);
  for (int64_t o = 0; o < outer; ++o) {
    LocalTensor<T> row = source[o * length];
    int64_t left = length;
    while (left > block) {
      const int64_t half = ((left + 1) / 2 + block - 1) / block * block;
      if (half > left - half) {
        Adds(work, row, T(0), static_cast<int32_t>(half));
        PipeBarrier<PIPE_V>();
        combine<T, fold>(work, work, row[half], left - half);
      } else {
        combine<T, fold>(work, row, row[half], half);
      }
      row = work;
      left = half;
    }
    barrier();
    T total = row.GetValue(0);
    for (int64_t l = 1; l < left; ++l) {
      const T next = row.GetValue(l);
      if constexpr (fold == Fold::Add) {
        total = static_cast<T>(total + next);
      } else if constexpr (fold == Fold::Max) {
        total = total != total || total > next ? total : next;
      } else {
        total = total != total || total < next ? total : next;
      }
    }
    to.SetValue(o, total);
    barrier();
  }
}
/// to = source, `filler` where it is no number: what maxnum and minnum of IEEE 754 leave out.
template <typename T>
__aicore__ inline void numbers(const LocalTensor<T>& to, const LocalTensor<T>& source, const LocalTensor<uint8_t>& bits,
                               T filler, int64_t count) {
  Compare(bits, source, source, CMPMODE::EQ, compared<T>(count));
  PipeBarrier<PIPE_V>();
  Select(to, bits, source, filler, SELMODE::VSEL_TENSOR_SCALAR_MODE, static_cast<uint32_t>(count));
  PipeBarrier<PIPE_V>();
}
/// Puts back folds of which no element is a number.
template <typename T>
__aicore__ inline void restore(const LocalTensor<T>& to, const LocalTensor<T>& source, T filler, int64_t outer,
                               int64_t length, int64_t inner) {
  barrier();
  for (int64_t o = 0; o < outer; ++o) {
    for (int64_t i = 0; i < inner; ++i) {
      if (to.GetValue(o * inner + i) != filler) continue;
      int64_t l = 0;
      T value = source.GetValue(o * length * inner + i);
      while (value != value && ++l < length) value = source.GetValue((o * length + l) * inner + i);
      if (value != value) to.SetValue(o * inner + i, value);
    }
  }
  barrier();
}

}  // namespace opkit_tile
