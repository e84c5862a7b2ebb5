/// What outputs hold before the kernel runs, as an OpDef says it.
/// Source: Ascend C API, utilities, OpParamDef, InitValue.
#pragma once

#include <cstdint>
#include <type_traits>

#include "opkit/api/half.h"
#include "opkit/host/abi.h"

namespace ops {

enum class ScalarType : uint32_t {
  UINT64 = 0,
  INT64 = 1,
  UINT32 = 2,
  INT32 = 3,
  UINT16 = 4,
  INT16 = 5,
  UINT8 = 6,
  INT8 = 7,
  FLOAT32 = 8,
  FLOAT16 = 9,
  INVALID_DTYPE = static_cast<uint32_t>(-1),
};

union ScalarNum {
  uint64_t value_u64;
  int64_t value_i64;
  float value_f32;
  ScalarNum() : value_u64(0) {}
  explicit ScalarNum(uint64_t value) : value_u64(value) {}
  explicit ScalarNum(int64_t value) : value_i64(value) {}
  explicit ScalarNum(float value) : value_f32(value) {}
};

namespace detail {

inline bool is_float(ScalarType type) { return type == ScalarType::FLOAT32 || type == ScalarType::FLOAT16; }

/// 0 of what is no type.
inline uint32_t size_bytes(ScalarType type) {
  switch (type) {
    case ScalarType::UINT64:
    case ScalarType::INT64: return 8;
    case ScalarType::UINT32:
    case ScalarType::INT32:
    case ScalarType::FLOAT32: return 4;
    case ScalarType::UINT16:
    case ScalarType::INT16:
    case ScalarType::FLOAT16: return 2;
    case ScalarType::UINT8:
    case ScalarType::INT8: return 1;
    case ScalarType::INVALID_DTYPE: break;
  }
  return 0;
}

}  // namespace detail

struct ScalarVar {
  ScalarType scalar_type = ScalarType::INVALID_DTYPE;
  ScalarNum scalar_num;

  ScalarVar() = default;
  /// The number lies in the member that values of its type are in.
  template <typename Number, typename = std::enable_if_t<std::is_arithmetic_v<Number>>>
  ScalarVar(ScalarType type, Number num)
      : scalar_type(type),
        scalar_num(detail::is_float(type) ? ScalarNum(static_cast<float>(num)) : ScalarNum(static_cast<int64_t>(num))) {
  }
  bool operator==(const ScalarVar& other) const {
    if (scalar_type != other.scalar_type) return false;
    return detail::is_float(scalar_type) ? scalar_num.value_f32 == other.scalar_num.value_f32
                                         : scalar_num.value_u64 == other.scalar_num.value_u64;
  }
};

namespace detail {

inline opkit::host::InitialValue initial_value(const ScalarVar& value) {
  opkit::host::InitialValue out{value.scalar_num.value_u64, size_bytes(value.scalar_type)};
  if (value.scalar_type == ScalarType::FLOAT16) out.bits = opkit::detail::half_bits(value.scalar_num.value_f32);
  if (value.scalar_type == ScalarType::FLOAT32) out.bits = opkit::detail::float_bits(value.scalar_num.value_f32);
  return out;
}

}  // namespace detail

}  // namespace ops
