/// Operands of functions that take addresses instead of tensors.
#pragma once

#include "opkit/api/tensor.h"

namespace opkit {

/// What lies at an address in UB: a number that LocalTensor::GetPhyAddr gave or, as kernels with fixed addresses write
/// it, an offset from UB's start. Which buffer it belongs to is not known: the whole memory bounds it.
template <typename T>
inline Operand ub_operand(uint64_t address) {
  const uint64_t limit = local_memory_bytes(Space::UB);
  Operand operand;
  operand.dtype = dtype_of<T>();
  operand.address = address < limit ? address : address - reinterpret_cast<uint64_t>(local_memory(Space::UB));
  operand.end = limit;
  return operand;
}
template <typename T>
inline Operand ub_operand(const T* address) {
  return ub_operand<T>(reinterpret_cast<uint64_t>(address));
}

template <typename T>
inline Operand gm_operand(const T* address) {
  Operand operand;
  operand.space = Space::GM;
  operand.dtype = dtype_of<T>();
  operand.address = reinterpret_cast<uint64_t>(address);
  operand.end = ~0ull;
  return operand;
}

}  // namespace opkit
