/// The instruction table's names as an enumeration. A row in a .inc file is all that a new instruction needs here.
#pragma once

#include <cstdint>
#include <initializer_list>

namespace opkit {

enum class Op : uint16_t {
#define OPKIT_ROW(name, ...) name,
#include "opkit/isa/rows.inc"
#undef OPKIT_ROW
  kCount
};

/// Changes with every row: kernels hold the numbers of the instructions that they issue.
constexpr uint32_t table_fingerprint() {
  uint32_t hash = 2166136261u;  // FNV-1a
  for (const char* text : {
#define OPKIT_ROW(name, ...) #name,
#include "opkit/isa/rows.inc"
#undef OPKIT_ROW
       }) {
    for (; *text != 0; ++text) hash = (hash ^ static_cast<uint8_t>(*text)) * 16777619u;
  }
  return hash;
}

}  // namespace opkit
