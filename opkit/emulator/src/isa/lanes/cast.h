/// Lanes of Cast. Source: Ascend C API, data structures, precision conversion.
///
/// A conversion to an integer saturates; the documents do not say what NaN becomes: it is 0 here.
#pragma once

#include "opkit/isa/arch_rows.h"
#include "isa/lanes/formats.h"
#include "isa/lanes/lanes.h"

namespace opkit::lanes {
namespace {

enum Round : int { kNone, kRint, kFloor, kCeil, kRound, kTrunc, kOdd };

/// An integral float next to `value`, chosen by the mode.
template <int mode>
OPKIT_INLINE F32V integral(F32V value) {
  const F32V magnitude = absolute(value);
  const U32V sign = (U32V)value & 0x80000000;
  const auto is_integral = !(magnitude < 0x1p23f);  // and NaN
  const F32V small = is_integral ? F32V{} : value;
  F32V result;
  if constexpr (mode == kNone || mode == kRint) {
    result = (absolute(small) + 0x1p23f) - 0x1p23f;
    result = (F32V)((U32V)result | sign);
  } else {
    const F32V truncated = __builtin_convertvector(__builtin_convertvector(small, S32V), F32V);
    result = truncated;
    if constexpr (mode == kFloor) result = truncated > small ? truncated - 1.0f : truncated;
    if constexpr (mode == kCeil) result = truncated < small ? truncated + 1.0f : truncated;
    if constexpr (mode == kRound) {
      const F32V one = (F32V)((U32V)broadcast(1.0f) | sign);
      result = absolute(small - truncated) >= 0.5f ? truncated + one : truncated;
    }
    result = (F32V)((U32V)result | sign);  // -0.3 becomes -0
  }
  return is_integral ? value : result;
}

OPKIT_INLINE F32V zero_for_nan(F32V value) { return value == value ? value : F32V{}; }

/// Saturated; the value is integral.
OPKIT_INLINE S32V to_s32(F32V value) {
  const F32V limited = clamp(zero_for_nan(value), -0x1p31f, 0x1.fffffep30f);
  const S32V result = __builtin_convertvector(limited, S32V);
  return value >= 0x1p31f ? S32V{} + 0x7fffffff : result;
}

OPKIT_INLINE int64_t to_s64(float value) {
  if (!(value == value)) return 0;
  if (value >= 0x1p63f) return INT64_MAX;
  if (value < -0x1p63f) return INT64_MIN;
  return static_cast<int64_t>(value);
}

/// Whether rounding away the part below the unit adds one to the magnitude. `rest` is that part, `half` half a unit.
template <int mode>
OPKIT_INLINE bool rounds_up(bool is_negative, bool is_odd, uint64_t rest, uint64_t half) {
  if (rest == 0) return false;
  switch (mode) {
    case kFloor: return is_negative;
    case kCeil: return !is_negative;
    case kRound: return rest >= half;
    case kTrunc: return false;
    case kOdd: return !is_odd;
    default: return rest > half || (rest == half && is_odd);
  }
}

/// A finite float with `dropped` bits of its mantissa rounded away. A carry into the exponent is right as it is.
template <int mode>
OPKIT_INLINE uint32_t round_magnitude(uint32_t magnitude, int dropped, bool is_negative) {
  const uint32_t rest = magnitude & ((1u << dropped) - 1);
  const uint32_t kept = magnitude >> dropped;
  return kept + rounds_up<mode>(is_negative, kept & 1, rest, 1u << (dropped - 1));
}

template <int mode>
uint16_t half_rounded(uint32_t bits) {
  const bool is_negative = bits >> 31 != 0;
  const uint16_t sign = static_cast<uint16_t>(is_negative ? 0x8000 : 0);
  const uint32_t magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000) return 0x7e00;
  if (magnitude == 0x7f800000) return static_cast<uint16_t>(sign | 0x7c00);
  if (magnitude >= 113u << 23) {
    const uint32_t result = round_magnitude<mode>(magnitude - (112u << 23), 13, is_negative);
    if (result < 0x7c00) return static_cast<uint16_t>(sign | result);
    // Beyond the largest half: infinite, unless the mode rounds towards zero there.
    const bool is_towards_zero =
        mode == kTrunc || mode == kOdd || (mode == kFloor && !is_negative) || (mode == kCeil && is_negative);
    return static_cast<uint16_t>(sign | (is_towards_zero ? 0x7bff : 0x7c00));
  }
  if (magnitude == 0) return sign;
  // A subnormal half: the mantissa with its hidden bit, in units of 2^-24.
  const int exponent = static_cast<int>(magnitude >> 23);
  const uint64_t mantissa = exponent == 0 ? magnitude & 0x7fffff : (magnitude & 0x7fffff) | 0x800000;
  int dropped = 126 - (exponent == 0 ? 1 : exponent);
  if (dropped > 40) dropped = 40;
  const uint64_t rest = mantissa & ((1ull << dropped) - 1);
  const uint64_t kept = mantissa >> dropped;
  const bool up = rounds_up<mode>(is_negative, (kept & 1) != 0, rest, 1ull << (dropped - 1));
  return static_cast<uint16_t>(sign | (kept + up));
}

template <int mode>
uint16_t bfloat16_rounded(uint32_t bits) {
  const uint32_t magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000) return 0x7fc0;
  const uint32_t sign = bits >> 16 & 0x8000;
  if (magnitude == 0x7f800000) return static_cast<uint16_t>(sign | 0x7f80);
  return static_cast<uint16_t>(sign | round_magnitude<mode>(magnitude, 16, sign != 0));
}

/// An integer as a float, rounded by the mode.
template <int mode>
float float_rounded(int64_t value) {
  const bool is_negative = value < 0;
  uint64_t magnitude = is_negative ? 0 - static_cast<uint64_t>(value) : static_cast<uint64_t>(value);
  if (magnitude == 0) return 0.0f;
  const int bits = 64 - __builtin_clzll(magnitude);
  if (bits > 24) {
    const int dropped = bits - 24;
    const uint64_t rest = magnitude & ((1ull << dropped) - 1);
    const uint64_t kept = magnitude >> dropped;
    magnitude = (kept + rounds_up<mode>(is_negative, (kept & 1) != 0, rest, 1ull << (dropped - 1))) << dropped;
  }
  const float result = static_cast<float>(magnitude);  // exact
  return is_negative ? -result : result;
}

// Readers and writers of one vector of elements, by type, through floats.

OPKIT_INLINE F32V read_floats(const char* from, DType type) {
  typedef int8_t BytesV __attribute__((vector_size(kFloats)));
  typedef uint8_t UnsignedBytesV __attribute__((vector_size(kFloats)));
  typedef int16_t ShortsV __attribute__((vector_size(kFloats * 2)));
  switch (type) {
    case DType::F16: return widen_half(load<HalvesV>(from));
    case DType::BF16: return widen_bfloat16(load<HalvesV>(from));
    case DType::S8: return __builtin_convertvector(load<BytesV>(from), F32V);
    case DType::U8: return __builtin_convertvector(load<UnsignedBytesV>(from), F32V);
    case DType::S16: return __builtin_convertvector(load<ShortsV>(from), F32V);
    case DType::S32: return __builtin_convertvector(load<S32V>(from), F32V);
    default: return load<F32V>(from);
  }
}

constexpr bool is_float(DType type) { return type == DType::F16 || type == DType::BF16 || type == DType::F32; }

template <DType type, int mode>
OPKIT_INLINE void write_floats(char* to, F32V value) {
  typedef int8_t BytesV __attribute__((vector_size(kFloats)));
  typedef uint8_t UnsignedBytesV __attribute__((vector_size(kFloats)));
  typedef int16_t ShortsV __attribute__((vector_size(kFloats * 2)));
  if constexpr (type == DType::F16) {
    if constexpr (mode <= kRint) {
      store(to, narrow_half(canonical(value)));
    } else {
      for (size_t i = 0; i < kFloats; ++i) {
        const uint16_t bits = half_rounded<mode>(((U32V)value)[i]);
        __builtin_memcpy(to + 2 * i, &bits, 2);
      }
    }
  } else if constexpr (type == DType::BF16) {
    if constexpr (mode <= kRint) {
      store(to, narrow_bfloat16(canonical(value)));
    } else {
      for (size_t i = 0; i < kFloats; ++i) {
        const uint16_t bits = bfloat16_rounded<mode>(((U32V)value)[i]);
        __builtin_memcpy(to + 2 * i, &bits, 2);
      }
    }
  } else if constexpr (type == DType::F32) {
    store(to, canonical(value));
  } else {
    const F32V whole = integral<mode>(value);
    if constexpr (type == DType::S32) store(to, to_s32(whole));
    if constexpr (type == DType::S16) {
      store(to, __builtin_convertvector(__builtin_convertvector(clamp(zero_for_nan(whole), -32768.0f, 32767.0f), S32V),
                                        ShortsV));
    }
    if constexpr (type == DType::S8) {
      store(to, __builtin_convertvector(__builtin_convertvector(clamp(zero_for_nan(whole), -128.0f, 127.0f), S32V),
                                        BytesV));
    }
    if constexpr (type == DType::U8) {  // the documents call a negative source abnormal; it saturates to 0
      store(to, __builtin_convertvector(__builtin_convertvector(clamp(zero_for_nan(whole), 0.0f, 255.0f), S32V),
                                        UnsignedBytesV));
    }
  }
}

template <DType dst_type, DType src_type, int mode>
void cast_run(void* dst, const void* const* sources, const uint64_t*, size_t count) {
  char* to = static_cast<char*>(dst);
  const char* from = static_cast<const char*>(sources[0]);
  constexpr size_t kTo = size_bytes(dst_type);
  constexpr size_t kFrom = size_bytes(src_type);
  const auto convert = [](F32V value) __attribute__((always_inline)) {
    // Between two float32 tensors Cast rounds to integers.
    return src_type == DType::F32 && dst_type == DType::F32 ? integral<mode>(value) : value;
  };
  size_t i = 0;
  for (; i + 2 * kFloats <= count; i += 2 * kFloats) {
    const F32V first = convert(read_floats(from + i * kFrom, src_type));
    const F32V second = convert(read_floats(from + (i + kFloats) * kFrom, src_type));
    write_floats<dst_type, mode>(to + i * kTo, first);
    write_floats<dst_type, mode>(to + (i + kFloats) * kTo, second);
  }
  while (i < count) {
    const size_t step = count - i < kFloats ? count - i : kFloats;
    char in[kVectorBytes] = {};
    char out[kVectorBytes];
    __builtin_memcpy(in, from + i * kFrom, step * kFrom);
    write_floats<dst_type, mode>(out, convert(read_floats(in, src_type)));
    __builtin_memcpy(to + i * kTo, out, step * kTo);
    i += step;
  }
}

template <class To, class From, class Function>
OPKIT_INLINE void each(void* dst, const void* const* sources, size_t count, Function function) {
  const char* from = static_cast<const char*>(sources[0]);
  char* to = static_cast<char*>(dst);
  for (size_t i = 0; i < count; ++i) {
    From value;
    __builtin_memcpy(&value, from + i * sizeof(From), sizeof(From));
    const To result = function(value);
    __builtin_memcpy(to + i * sizeof(To), &result, sizeof(To));
  }
}

/// src / 2^17 * scale * 2^17, where scale is the half in the DEQSCALE register.
void cast_s32_f16(void* dst, const void* const* sources, const uint64_t* scalars, size_t count) {
  const float scale = widen_half(HalvesV{} + static_cast<uint16_t>(scalars[0]))[0];
  each<uint16_t, int32_t>(dst, sources, count, [scale](int32_t value) {
    const float result = float_rounded<kRint>(value) * 0x1p-17f * scale * 0x1p17f;
    return narrow_half(canonical(broadcast(result)))[0];
  });
}

template <DType dst_type, DType src_type, int mode>
void cast_wide(void* dst, const void* const* sources, const uint64_t*, size_t count) {
  if constexpr (src_type == DType::S32 && dst_type == DType::S16) {
    each<int16_t, int32_t>(dst, sources, count, [](int32_t value) {
      return static_cast<int16_t>(value > 32767 ? 32767 : value < -32768 ? -32768 : value);
    });
  } else if constexpr (src_type == DType::S64 && dst_type == DType::S32) {
    each<int32_t, int64_t>(dst, sources, count, [](int64_t value) {
      return static_cast<int32_t>(value > INT32_MAX ? INT32_MAX : value < INT32_MIN ? INT32_MIN : value);
    });
  } else if constexpr (src_type == DType::S32 && dst_type == DType::S64) {
    each<int64_t, int32_t>(dst, sources, count, [](int32_t value) { return int64_t{value}; });
  } else if constexpr (src_type == DType::F32) {
    each<int64_t, float>(dst, sources, count, [](float value) { return to_s64(integral<mode>(broadcast(value))[0]); });
  } else if constexpr (src_type == DType::S64) {
    each<float, int64_t>(dst, sources, count, [](int64_t value) { return float_rounded<mode>(value); });
  } else {
    each<float, int32_t>(dst, sources, count, [](int32_t value) { return float_rounded<mode>(value); });
  }
}

template <DType dst_type, DType src_type, int mode>
constexpr Lane cast_lane() {
  constexpr bool is_wide = src_type == DType::S64 || dst_type == DType::S64 ||
                           (src_type == DType::S32 && dst_type == DType::S16) ||
                           (src_type == DType::S32 && dst_type == DType::F32 && mode > kRint);
  if constexpr (src_type == DType::S4 || dst_type == DType::S4) {
    return nullptr;  // isa/cast_int4.cpp packs and unpacks bytes
  } else if constexpr (src_type == DType::S32 && dst_type == DType::F16) {
    return &cast_s32_f16;
  } else if constexpr (is_wide) {
    return &cast_wide<dst_type, src_type, mode>;
  } else {
    return &cast_run<dst_type, src_type, mode>;
  }
}

template <DType dst_type, DType src_type, uint32_t modes>
constexpr void add_cast(LaneTable& table) {
  Lane* lanes = table.cast[static_cast<size_t>(dst_type)][static_cast<size_t>(src_type)];
  if constexpr ((modes & 1u << kNone) != 0) lanes[kNone] = cast_lane<dst_type, src_type, kNone>();
  if constexpr ((modes & 1u << kRint) != 0) lanes[kRint] = cast_lane<dst_type, src_type, kRint>();
  if constexpr ((modes & 1u << kFloor) != 0) lanes[kFloor] = cast_lane<dst_type, src_type, kFloor>();
  if constexpr ((modes & 1u << kCeil) != 0) lanes[kCeil] = cast_lane<dst_type, src_type, kCeil>();
  if constexpr ((modes & 1u << kRound) != 0) lanes[kRound] = cast_lane<dst_type, src_type, kRound>();
  if constexpr ((modes & 1u << kTrunc) != 0) lanes[kTrunc] = cast_lane<dst_type, src_type, kTrunc>();
  if constexpr ((modes & 1u << kOdd) != 0) lanes[kOdd] = cast_lane<dst_type, src_type, kOdd>();
}

constexpr void add_casts(LaneTable& table) {
  using namespace round_bits;
#define CAST(src, dst, modes) add_cast<DType::dst, DType::src, roundings_on_any(DType::src, DType::dst, modes)>(table);
#include "opkit/isa/vec_cast.inc"
#undef CAST
}

}  // namespace
}  // namespace opkit::lanes
