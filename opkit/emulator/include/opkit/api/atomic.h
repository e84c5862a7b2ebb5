/// Atomic writes of the DMA to global memory. Source: Ascend C API, atomic operations.
#pragma once

#include <type_traits>

#include "opkit/api/tensor.h"

namespace opkit {

/// How later writes of the DMA treat what global memory holds. 0: overwrite, 1: add, 2: maximum, 3: minimum.
OPKIT_API void set_atomic_operation(uint8_t operation);
OPKIT_API void set_atomic_dtype(DType dtype);
OPKIT_API void get_atomic(uint8_t& operation, DType& dtype);

template <typename T>
constexpr bool is_atomic_type =
    std::is_same<T, float>::value || std::is_same<T, half>::value || std::is_same<T, bfloat16_t>::value ||
    std::is_same<T, int8_t>::value || std::is_same<T, int16_t>::value || std::is_same<T, int32_t>::value;

}  // namespace opkit

namespace AscendC {

/// Of other types where it is reached: kernels for several types have it in a branch that such a type never takes.
template <typename T>
inline void SetAtomicType(opkit::Where where = opkit::Where::here()) {
  if constexpr (opkit::is_atomic_type<T>) {
    opkit::set_atomic_dtype(opkit::dtype_of<T>());
  } else {
    opkit::illegal_operand("atomic writes work on int8_t, int16_t, int32_t, half, bfloat16_t and float", where);
  }
}
template <typename T>
inline void SetAtomicAdd(opkit::Where where = opkit::Where::here()) {
  SetAtomicType<T>(where);
  opkit::set_atomic_operation(1);
}
template <typename T>
inline void SetAtomicMax(opkit::Where where = opkit::Where::here()) {
  SetAtomicType<T>(where);
  opkit::set_atomic_operation(2);
}
template <typename T>
inline void SetAtomicMin(opkit::Where where = opkit::Where::here()) {
  SetAtomicType<T>(where);
  opkit::set_atomic_operation(3);
}
inline void SetAtomicNone() { opkit::set_atomic_operation(0); }
inline void DisableDmaAtomic() { opkit::set_atomic_operation(0); }

enum class AtomicDtype { ATOMIC_NONE = 0, ATOMIC_F32, ATOMIC_F16, ATOMIC_S16, ATOMIC_S32, ATOMIC_S8, ATOMIC_BF16 };
enum class AtomicOp { ATOMIC_SUM = 0 };

template <AtomicDtype type, AtomicOp operation>
inline void SetStoreAtomicConfig() {
  static_assert(operation == AtomicOp::ATOMIC_SUM, "SetStoreAtomicConfig knows ATOMIC_SUM only");
  switch (type) {
    case AtomicDtype::ATOMIC_NONE: return SetAtomicNone();
    case AtomicDtype::ATOMIC_F32: return SetAtomicAdd<float>();
    case AtomicDtype::ATOMIC_F16: return SetAtomicAdd<half>();
    case AtomicDtype::ATOMIC_S16: return SetAtomicAdd<int16_t>();
    case AtomicDtype::ATOMIC_S32: return SetAtomicAdd<int32_t>();
    case AtomicDtype::ATOMIC_S8: return SetAtomicAdd<int8_t>();
    case AtomicDtype::ATOMIC_BF16: return SetAtomicAdd<bfloat16_t>();
  }
}

/// The numbers of AtomicDtype and AtomicOp; ATOMIC_NONE while nothing is set.
inline void GetStoreAtomicConfig(uint16_t& atomicType, uint16_t& atomicOp) {
  uint8_t operation = 0;
  opkit::DType dtype = opkit::DType::F32;
  opkit::get_atomic(operation, dtype);
  atomicOp = static_cast<uint16_t>(AtomicOp::ATOMIC_SUM);
  AtomicDtype type = AtomicDtype::ATOMIC_NONE;
  if (operation != 0) {
    switch (dtype) {
      case opkit::DType::F32: type = AtomicDtype::ATOMIC_F32; break;
      case opkit::DType::F16: type = AtomicDtype::ATOMIC_F16; break;
      case opkit::DType::S16: type = AtomicDtype::ATOMIC_S16; break;
      case opkit::DType::S32: type = AtomicDtype::ATOMIC_S32; break;
      case opkit::DType::S8: type = AtomicDtype::ATOMIC_S8; break;
      default: type = AtomicDtype::ATOMIC_BF16; break;
    }
  }
  atomicType = static_cast<uint16_t>(type);
}

}  // namespace AscendC
