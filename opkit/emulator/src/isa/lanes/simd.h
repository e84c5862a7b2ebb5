/// Vectors of the target that this translation unit is compiled for, and conversions between halves and floats.
///
/// Nothing of the C++ library may be included here: an inline function compiled with AVX-512 must not be the copy
/// that the linker keeps for everyone.
#pragma once

#include <stddef.h>
#include <stdint.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#define OPKIT_INLINE static inline __attribute__((always_inline))

namespace opkit::lanes {
namespace {  // one copy per target

#if defined(__AVX512F__)
constexpr size_t kVectorBytes = 64;
#elif defined(__AVX2__)
constexpr size_t kVectorBytes = 32;
#else
constexpr size_t kVectorBytes = 16;
#endif
constexpr size_t kFloats = kVectorBytes / 4;  ///< floats in a vector

typedef float F32V __attribute__((vector_size(kVectorBytes)));
typedef int32_t S32V __attribute__((vector_size(kVectorBytes)));
typedef uint32_t U32V __attribute__((vector_size(kVectorBytes)));
typedef int16_t S16V __attribute__((vector_size(kVectorBytes)));
typedef uint16_t U16V __attribute__((vector_size(kVectorBytes)));
typedef double F64V __attribute__((vector_size(kVectorBytes)));
typedef uint16_t HalvesV __attribute__((vector_size(kVectorBytes / 2)));  ///< as many 16-bit values as floats
typedef float NarrowF32V __attribute__((vector_size(kVectorBytes / 2)));  ///< as many floats as doubles in F64V

template <class V>
OPKIT_INLINE V load(const void* address) {
  V value;
  __builtin_memcpy(&value, address, sizeof(V));
  return value;
}

template <class V>
OPKIT_INLINE void store(void* address, V value) {
  __builtin_memcpy(address, &value, sizeof(V));
}

// Fewer bytes than a vector has. With masks where the target has them: what a copy of so many bytes has put together is
// read as a vector only after every byte has reached the cache.
#if defined(__AVX512BW__) && defined(__AVX512VL__)
OPKIT_INLINE uint64_t first_bytes(size_t bytes) { return bytes >= 64 ? ~0ull : (1ull << bytes) - 1; }
#endif

template <class V>
OPKIT_INLINE V load_partial(const void* address, size_t bytes) {
#if defined(__AVX512BW__) && defined(__AVX512VL__)
  static_assert(sizeof(V) == 64 || sizeof(V) == 32);
  if constexpr (sizeof(V) == 64) {
    return (V)_mm512_maskz_loadu_epi8(first_bytes(bytes), address);
  } else {
    return (V)_mm256_maskz_loadu_epi8(static_cast<__mmask32>(first_bytes(bytes)), address);
  }
#else
  V value = {};
  __builtin_memcpy(&value, address, bytes);
  return value;
#endif
}

template <class V>
OPKIT_INLINE void store_partial(void* address, V value, size_t bytes) {
#if defined(__AVX512BW__) && defined(__AVX512VL__)
  static_assert(sizeof(V) == 64 || sizeof(V) == 32);
  if constexpr (sizeof(V) == 64) {
    _mm512_mask_storeu_epi8(address, first_bytes(bytes), (__m512i)value);
  } else {
    _mm256_mask_storeu_epi8(address, static_cast<__mmask32>(first_bytes(bytes)), (__m256i)value);
  }
#else
  __builtin_memcpy(address, &value, bytes);
#endif
}

OPKIT_INLINE F32V broadcast(float value) { return value - F32V{}; }

/// The bit patterns of halves as floats; exact.
OPKIT_INLINE F32V widen_half(HalvesV halves) {
#if defined(__AVX512F__)
  return (F32V)_mm512_cvtph_ps((__m256i)halves);
#elif defined(__F16C__)
  return (F32V)_mm256_cvtph_ps((__m128i)halves);
#else
  const U32V bits = __builtin_convertvector(halves, U32V);
  const U32V magnitude = bits & 0x7fff;
  // A float with the half's exponent field is 2^112 times too small, for subnormals too.
  const U32V finite = (U32V)((F32V)(magnitude << 13) * 0x1p112f);
  const U32V quiet = (U32V)(magnitude > 0x7c00) & 0x00400000;
  const U32V special = (magnitude << 13) | 0x7f800000 | quiet;
  return (F32V)((magnitude >= 0x7c00 ? special : finite) | (bits & 0x8000) << 16);
#endif
}

/// Floats rounded to the nearest half, ties to even, as bit patterns. Beyond 65504 they become infinite: the chip's
/// default, non-saturating mode. Source: ReduceDataBlock, constraints.
OPKIT_INLINE HalvesV narrow_half(F32V value) {
#if defined(__AVX512F__)
  return (HalvesV)_mm512_cvtps_ph((__m512)value, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
#elif defined(__F16C__)
  return (HalvesV)_mm256_cvtps_ph((__m256)value, _MM_FROUND_TO_NEAREST_INT);
#else
  const U32V bits = (U32V)value;
  const S32V magnitude = (S32V)(bits & 0x7fffffff);
  const S32V rounded = magnitude - (112 << 23) + 0xfff + ((magnitude >> 13) & 1);
  const S32V normal = rounded >> 13;
  // Adding one half puts the unit of the last place where a subnormal half has it.
  const S32V subnormal = (S32V)((F32V)magnitude + 0.5f) - (S32V)(F32V{} + 0.5f);
  const S32V nan = ((magnitude >> 13) & 0x3ff) | 0x7e00;
  S32V result = magnitude < (113 << 23) ? subnormal : normal;
  result = magnitude >= 0x477ff000 ? S32V{} + 0x7c00 : result;
  result = magnitude > 0x7f800000 ? nan : result;
  return __builtin_convertvector((U32V)result | (bits >> 16 & 0x8000), HalvesV);
#endif
}

OPKIT_INLINE F32V widen_bfloat16(HalvesV values) { return (F32V)(__builtin_convertvector(values, U32V) << 16); }

OPKIT_INLINE HalvesV narrow_bfloat16(F32V value) {
  const U32V bits = (U32V)value;
  const U32V rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
  const U32V nan = bits >> 16 | 0x40;
  return __builtin_convertvector((bits & 0x7fffffff) > 0x7f800000 ? nan : rounded, HalvesV);
}

/// NaN results depend on operand order inside an instruction, which compilers may change: make them all one NaN.
OPKIT_INLINE F32V canonical(F32V value) {
#if defined(__AVX512F__)
  return (F32V)_mm512_mask_mov_ps((__m512)value, _mm512_cmp_ps_mask((__m512)value, (__m512)value, _CMP_UNORD_Q),
                                  _mm512_castsi512_ps(_mm512_set1_epi32(0x7fc00000)));
#else
  return value == value ? value : (F32V)(U32V{} + 0x7fc00000);
#endif
}

/// True if any lane has |value| > limit or is NaN.
OPKIT_INLINE bool any_beyond(F32V value, float limit) {
  const F32V magnitude = (F32V)((U32V)value & 0x7fffffff);
#if defined(__AVX512F__)
  return _mm512_cmp_ps_mask((__m512)magnitude, _mm512_set1_ps(limit), _CMP_NLE_UQ) != 0;
#elif defined(__AVX2__)
  return _mm256_movemask_ps(_mm256_cmp_ps((__m256)magnitude, _mm256_set1_ps(limit), _CMP_NLE_UQ)) != 0;
#elif defined(__SSE2__)
  return _mm_movemask_ps(_mm_cmpnle_ps((__m128)magnitude, _mm_set1_ps(limit))) != 0;
#else
  for (size_t i = 0; i < kFloats; ++i) {
    if (!(magnitude[i] <= limit)) return true;
  }
  return false;
#endif
}

/// True if any lane of either is NaN.
OPKIT_INLINE bool any_nan(F32V a, F32V b) {
#if defined(__AVX512F__)
  return _mm512_cmp_ps_mask((__m512)a, (__m512)b, _CMP_UNORD_Q) != 0;
#elif defined(__AVX2__)
  return _mm256_movemask_ps(_mm256_cmp_ps((__m256)a, (__m256)b, _CMP_UNORD_Q)) != 0;
#elif defined(__SSE2__)
  return _mm_movemask_ps(_mm_cmpunord_ps((__m128)a, (__m128)b)) != 0;
#else
  for (size_t i = 0; i < kFloats; ++i) {
    if (a[i] != a[i] || b[i] != b[i]) return true;
  }
  return false;
#endif
}

/// The smaller, the larger: `value` itself when it is NaN.
OPKIT_INLINE F32V clamp(F32V value, float low, float high) {
#if defined(__AVX512F__)
  return (F32V)_mm512_min_ps(_mm512_set1_ps(high), _mm512_max_ps(_mm512_set1_ps(low), (__m512)value));
#elif defined(__AVX2__)
  return (F32V)_mm256_min_ps(_mm256_set1_ps(high), _mm256_max_ps(_mm256_set1_ps(low), (__m256)value));
#else
  value = value < low ? broadcast(low) : value;
  return value > high ? broadcast(high) : value;
#endif
}

OPKIT_INLINE F32V square_root(F32V value) {
#if defined(__AVX512F__)
  return (F32V)_mm512_sqrt_ps((__m512)value);
#elif defined(__AVX2__)
  return (F32V)_mm256_sqrt_ps((__m256)value);
#elif defined(__SSE2__)
  return (F32V)_mm_sqrt_ps((__m128)value);
#else
  for (size_t i = 0; i < kFloats; ++i) value[i] = __builtin_sqrtf(value[i]);
  return value;
#endif
}

OPKIT_INLINE F64V square_root(F64V value) {
#if defined(__AVX512F__)
  return (F64V)_mm512_sqrt_pd((__m512d)value);
#elif defined(__AVX2__)
  return (F64V)_mm256_sqrt_pd((__m256d)value);
#elif defined(__SSE2__)
  return (F64V)_mm_sqrt_pd((__m128d)value);
#else
  for (size_t i = 0; i < kVectorBytes / 8; ++i) value[i] = __builtin_sqrt(value[i]);
  return value;
#endif
}

}  // namespace
}  // namespace opkit::lanes
