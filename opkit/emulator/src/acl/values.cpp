// Element sizes and half-precision conversion, without a device.
#include <cstring>

#include "acl/acl_base.h"

size_t aclDataTypeSize(aclDataType data_type) {
  switch (data_type) {
    case ACL_INT8:
    case ACL_UINT8:
    case ACL_BOOL:
    case ACL_HIFLOAT8:
    case ACL_FLOAT8_E5M2:
    case ACL_FLOAT8_E4M3FN:
    case ACL_FLOAT8_E8M0: return 1;
    case ACL_FLOAT16:
    case ACL_BF16:
    case ACL_INT16:
    case ACL_UINT16: return 2;
    case ACL_FLOAT:
    case ACL_INT32:
    case ACL_UINT32:
    case ACL_COMPLEX32: return 4;
    case ACL_INT64:
    case ACL_UINT64:
    case ACL_DOUBLE:
    case ACL_COMPLEX64: return 8;
    case ACL_COMPLEX128: return 16;
    default: return 0;
  }
}

float aclFloat16ToFloat(aclFloat16 value) {
  const uint32_t sign = static_cast<uint32_t>(value & 0x8000u) << 16;
  const uint32_t exponent = (value >> 10) & 0x1Fu;
  const uint32_t fraction = value & 0x3FFu;
  uint32_t bits = 0;
  if (exponent == 0) {
    // Zero or subnormal: fraction * 2^-24, exact in single precision.
    const float magnitude = static_cast<float>(fraction) * 0x1p-24f;
    std::memcpy(&bits, &magnitude, sizeof(bits));
  } else {
    bits = (exponent == 31 ? 0x7F800000u : (exponent + 112) << 23) | fraction << 13;
  }
  bits |= sign;
  float result;
  std::memcpy(&result, &bits, sizeof(result));
  return result;
}

aclFloat16 aclFloatToFloat16(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  const uint32_t sign = bits >> 16 & 0x8000u;
  const uint32_t magnitude = bits & 0x7FFFFFFFu;
  if (magnitude > 0x7F800000u) return static_cast<aclFloat16>(sign | 0x7E00u);   // NaN
  if (magnitude >= 0x477FF000u) return static_cast<aclFloat16>(sign | 0x7C00u);  // 65520 and above round to infinity
  uint32_t half;
  if (magnitude < 0x38800000u) {
    // Below 2^-14: adding 0.5 leaves the rounded multiple of 2^-24 in the low bits of the fraction.
    float shifted;
    std::memcpy(&shifted, &magnitude, sizeof(shifted));
    shifted += 0.5f;
    std::memcpy(&half, &shifted, sizeof(half));
    half -= 0x3F000000u;
  } else {
    const uint32_t is_odd = magnitude >> 13 & 1;
    half = (magnitude - 0x38000000u + 0xFFFu + is_odd) >> 13;
  }
  return static_cast<aclFloat16>(sign | half);
}
