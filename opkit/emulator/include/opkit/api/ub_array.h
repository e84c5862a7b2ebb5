/// Arrays that kernels declare in UB: `__ubuf__ float x[64];`. The word is no storage class to a host compiler, so the
/// toolchain writes such a declaration as an UbArray and a reference to its elements (toolchain/source/ub_arrays.py).
/// Source: C API of asc-devkit, general remarks and constraints, memory as arrays.
#pragma once

#include "opkit/api/runtime_abi.h"

namespace opkit {

/// A place behind all buffers and arrays of the core's UB, at a data block's start.
OPKIT_API uint32_t place_array(uint32_t bytes, Where where);
OPKIT_API void remove_array(uint32_t address);

/// An array in UB until its scope ends.
template <typename Array>
class UbArray {
 public:
  explicit UbArray(Where where = Where::here()) : address_(place_array(sizeof(Array), where)) {}
  ~UbArray() { remove_array(address_); }
  UbArray(const UbArray&) = delete;
  UbArray& operator=(const UbArray&) = delete;

  Array& operator*() const { return *reinterpret_cast<Array*>(local_memory(Space::UB) + address_); }

 private:
  uint32_t address_;
};

}  // namespace opkit
