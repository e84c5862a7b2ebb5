/// The instruction table's names as an enumeration. A row in a .inc file is all that a new instruction needs here.
#pragma once

#include <cstdint>

namespace opkit {

enum class Op : uint16_t {
#define OPKIT_ROW(name, ...) name,
#include "opkit/isa/rows.inc"
#undef OPKIT_ROW
  kCount
};

}  // namespace opkit
