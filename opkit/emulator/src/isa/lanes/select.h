/// Lanes of Compare, Select, Duplicate and CreateVecIndex.
#pragma once

#include "isa/lanes/formats.h"
#include "isa/lanes/lanes.h"

namespace opkit::lanes {
namespace {

/// CMPMODE, in its order.
enum CompareMode : int { kLT, kGT, kEQ, kLE, kGE, kNE };

template <int mode, class V>
OPKIT_INLINE auto compares(V a, V b) {
  if constexpr (mode == kLT) return a < b;
  if constexpr (mode == kGT) return a > b;
  if constexpr (mode == kEQ) return a == b;
  if constexpr (mode == kLE) return a <= b;
  if constexpr (mode == kGE) return a >= b;
  if constexpr (mode == kNE) return a != b;
}

/// A bit for each 32-bit lane, from its sign.
OPKIT_INLINE uint32_t bits_of_mask(S32V mask) {
#if defined(__AVX512F__)
  return _mm512_movepi32_mask((__m512i)mask);
#elif defined(__AVX2__)
  return static_cast<uint32_t>(_mm256_movemask_ps((__m256)mask));
#elif defined(__SSE2__)
  return static_cast<uint32_t>(_mm_movemask_ps((__m128)mask));
#else
  uint32_t bits = 0;
  for (size_t i = 0; i < kFloats; ++i) bits |= static_cast<uint32_t>(mask[i] < 0) << i;
  return bits;
#endif
}

template <class Format, int mode, bool has_scalar>
void compare_run(void* dst, const void* const* sources, const uint64_t* scalars, size_t count) {
  using V = typename Format::V;
  const char* from_a = static_cast<const char*>(sources[0]);
  const char* from_b = has_scalar ? from_a : static_cast<const char*>(sources[1]);
  char* to = static_cast<char*>(dst);
  const V s = has_scalar ? Format::scalar(scalars[0]) : V{};
  constexpr size_t kGroup = kFloats < 8 ? 8 : kFloats;  // whole bytes of result
  char tail_a[64], tail_b[64];
  for (size_t i = 0; i < count; i += kGroup) {
    const char* a = from_a + i * Format::kBytes;
    const char* b = from_b + i * Format::kBytes;
    const size_t rest = count - i < kGroup ? count - i : kGroup;
    if (rest < kGroup) {
      __builtin_memcpy(tail_a, a, rest * Format::kBytes);
      __builtin_memcpy(tail_b, b, rest * Format::kBytes);
      __builtin_memset(tail_a + rest * Format::kBytes, 0, (kGroup - rest) * Format::kBytes);
      __builtin_memset(tail_b + rest * Format::kBytes, 0, (kGroup - rest) * Format::kBytes);
      a = tail_a;
      b = tail_b;
    }
    uint32_t bits = 0;
    for (size_t part = 0; part < kGroup; part += kFloats) {
      const V left = Format::read(a + part * Format::kBytes);
      const V right = has_scalar ? s : Format::read(b + part * Format::kBytes);
      bits |= bits_of_mask((S32V)compares<mode>(left, right)) << part;
    }
    __builtin_memcpy(to + i / 8, &bits, rest / 8);
  }
}

template <class Format, int mode>
constexpr void add_compare(LaneTable& table, DType type) {
  table.compare[mode][static_cast<size_t>(type)] = &compare_run<Format, mode, false>;
  table.compare_scalar[mode][static_cast<size_t>(type)] = &compare_run<Format, mode, true>;
}

template <class Format>
constexpr void add_compares(LaneTable& table, DType type) {
  add_compare<Format, kLT>(table, type);
  add_compare<Format, kGT>(table, type);
  add_compare<Format, kEQ>(table, type);
  add_compare<Format, kLE>(table, type);
  add_compare<Format, kGE>(table, type);
  add_compare<Format, kNE>(table, type);
}

/// All ones in the lanes whose bit is set; kLanes bits starting at bit `at` of `bits`, kLanes <= 32.
template <class V, class Scalar>
OPKIT_INLINE V mask_of_bits(const uint8_t* bits, size_t at) {
  constexpr size_t kLanes = sizeof(V) / sizeof(Scalar);
  uint32_t word = 0;
  __builtin_memcpy(&word, bits + at / 8, (kLanes + 7) / 8);
  word >>= at % 8;
#if defined(__AVX512F__)
  if constexpr (kLanes == 16) return (V)_mm512_movm_epi32(static_cast<__mmask16>(word));
  if constexpr (kLanes == 32) return (V)_mm512_movm_epi16(word);
#else
  // At most 16 lanes, so each lane can hold the whole word and pick its own bit.
  V lane_bit = {};
  for (size_t i = 0; i < kLanes; ++i) lane_bit[i] = static_cast<Scalar>(1u << i);
  const V all = V{} + static_cast<Scalar>(word & ((1u << kLanes) - 1));
  return (V)((all & lane_bit) != 0);
#endif
}

template <class V, class Scalar, bool has_scalar>
void select_run(void* dst, const void* const* sources, const uint64_t* scalars, size_t count) {
  constexpr size_t kBytes = sizeof(Scalar);
  constexpr size_t kLanes = sizeof(V) / kBytes;
  const char* from_a = static_cast<const char*>(sources[0]);
  const char* from_b = has_scalar ? from_a : static_cast<const char*>(sources[1]);
  const uint8_t* bits = static_cast<const uint8_t*>(sources[2]);
  char* to = static_cast<char*>(dst);
  V s = {};
  if (has_scalar) {
    for (size_t i = 0; i < kLanes; ++i) __builtin_memcpy((char*)&s + i * kBytes, &scalars[0], kBytes);
  }
  size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    const V mask = mask_of_bits<V, Scalar>(bits, i);
    const V b = has_scalar ? s : load<V>(from_b + i * kBytes);
    store(to + i * kBytes, (load<V>(from_a + i * kBytes) & mask) | (b & ~mask));
  }
  for (; i < count; ++i) {
    const bool is_first = (bits[i / 8] >> i % 8 & 1) != 0;
    const char* b = has_scalar ? (const char*)&s : from_b + i * kBytes;
    char value[kBytes];
    __builtin_memcpy(value, is_first ? from_a + i * kBytes : b, kBytes);
    __builtin_memcpy(to + i * kBytes, value, kBytes);
  }
}

template <class V>
void fill_run(void* dst, const void* const*, const uint64_t* scalars, size_t count) {
  constexpr size_t kBytes = sizeof(V{}[0]);
  constexpr size_t kLanes = sizeof(V) / kBytes;
  char* to = static_cast<char*>(dst);
  V s = {};
  for (size_t i = 0; i < kLanes; ++i) __builtin_memcpy((char*)&s + i * kBytes, &scalars[0], kBytes);
  size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) store(to + i * kBytes, s);
  if (i < count) store_partial(to + i * kBytes, s, (count - i) * kBytes);
}

/// Whether the chip adds the index in the element type or counts up is not documented: halves are rounded from the
/// exact sum, integers wrap around.
template <class Scalar>
void ramp_run(void* dst, const void* const*, const uint64_t* scalars, size_t count) {
  char* to = static_cast<char*>(dst);
  for (size_t i = 0; i < count; ++i) {
    const Scalar value = static_cast<Scalar>(static_cast<Scalar>(scalars[0]) + static_cast<Scalar>(scalars[1] + i));
    __builtin_memcpy(to + i * sizeof(Scalar), &value, sizeof(Scalar));
  }
}

template <class Format>
void ramp_floats(void* dst, const void* const*, const uint64_t* scalars, size_t count) {
  char* to = static_cast<char*>(dst);
  const float first = Format::scalar(scalars[0])[0];
  for (size_t i = 0; i < count; ++i) {
    Format::write_partial(to + i * Format::kBytes, broadcast(first + static_cast<float>(scalars[1] + i)), 1);
  }
}

constexpr void add_selects(LaneTable& table) {
  add_compares<FormatF16>(table, DType::F16);
  add_compares<FormatF32>(table, DType::F32);
  add_compare<FormatS32, kEQ>(table, DType::S32);
  table.select[2] = &select_run<U16V, uint16_t, false>;
  table.select[4] = &select_run<U32V, uint32_t, false>;
  table.select_scalar[2] = &select_run<U16V, uint16_t, true>;
  table.select_scalar[4] = &select_run<U32V, uint32_t, true>;
  table.fill[2] = &fill_run<U16V>;
  table.fill[4] = &fill_run<U32V>;
  table.ramp[static_cast<size_t>(DType::F16)] = &ramp_floats<FormatF16>;
  table.ramp[static_cast<size_t>(DType::F32)] = &ramp_floats<FormatF32>;
  table.ramp[static_cast<size_t>(DType::S16)] = &ramp_run<uint16_t>;
  table.ramp[static_cast<size_t>(DType::S32)] = &ramp_run<uint32_t>;
}

}  // namespace
}  // namespace opkit::lanes
