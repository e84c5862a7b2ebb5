/// What enumerators are called in messages, reports and Python.
#pragma once

#include <cstddef>

#include "opkit/types.h"

namespace opkit {

inline const char* pipe_name(Pipe pipe) {
  static constexpr const char* kNames[] = {
#define OPKIT_PIPE(name) #name,
#include "opkit/isa/units.inc"
      "ALL"};
  return kNames[static_cast<size_t>(pipe)];
}

/// The `code` column of opkit/dtypes.py.
inline const char* dtype_code(DType type) {
  static constexpr const char* kCodes[] = {"F16", "BF16", "F32", "S8",  "U8",   "S16", "U16",
                                           "S32", "U32",  "S64", "U64", "BOOL", "F64", "S4"};
  static_assert(sizeof(kCodes) / sizeof(kCodes[0]) == static_cast<size_t>(DType::kCount), "a code for each type");
  return kCodes[static_cast<size_t>(type)];
}

}  // namespace opkit
