/// Data types of op_call.h (ge::DataType numbers) by name. `opkit/dtypes.py` holds the same rows; a test compares them.
#pragma once

#include <cstdint>
#include <string>

#include "graph/types.h"

namespace opkit::host {

struct DtypeRow {
  int32_t number;
  const char* name;
  uint32_t size_bytes;  ///< of an element where it is carried: two elements of int4 share one
};

constexpr DtypeRow kDtypes[] = {
    {1, "float16", 2},  {0, "float32", 4},    {27, "bfloat16", 2},  {2, "int8", 1},  {4, "uint8", 1},   {6, "int16", 2},
    {7, "uint16", 2},   {3, "int32", 4},      {8, "uint32", 4},     {9, "int64", 8}, {10, "uint64", 8}, {12, "bool", 1},
    {11, "float64", 8}, {33, "complex32", 4}, {16, "complex64", 8}, {29, "int4", 1},
};

inline const DtypeRow* find_dtype(int32_t number) {
  for (const DtypeRow& row : kDtypes) {
    if (row.number == number) return &row;
  }
  return nullptr;
}

/// The canonical name, or "dtype <number>" for a type that opkit does not carry.
inline std::string dtype_name(int32_t number) {
  const DtypeRow* row = find_dtype(number);
  return row == nullptr ? "dtype " + std::to_string(number) : row->name;
}

/// Bytes of a tensor of a type that opkit carries.
inline uint64_t tensor_bytes(int64_t elements, int32_t number) {
  return static_cast<uint64_t>(ge::GetSizeInBytes(elements, static_cast<ge::DataType>(number)));
}

}  // namespace opkit::host
