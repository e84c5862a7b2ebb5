/// The data types and roundings that an instruction has on an architecture: those of its own row unless the
/// architecture's file (isa/arch_<number>.inc) says others.
#pragma once

#include "opkit/arch.h"
#include "opkit/isa/ops.h"
#include "opkit/isa/type_bits.h"

namespace opkit {

/// Bits of the data types; `types` are the row's.
constexpr uint32_t types_on(size_t arch, Op op, uint32_t types) {
  using namespace type_bits;
  switch (kArchs[arch].number) {
#define ARCH_BEGIN(number) \
  case number:             \
    switch (op) {
#define ARCH_TYPES(instruction, types_there) \
  case Op::instruction: return types_there;
#define ARCH_END()       \
  default: return types; \
    }
#include "opkit/isa/archs.inc"
  }
  return types;
}

constexpr uint32_t types_on_any(Op op, uint32_t types) {
  uint32_t all = 0;
  for (size_t arch = 0; arch < kArchCount; ++arch) all |= types_on(arch, op, types);
  return all;
}

/// Bits of the RoundMode values with which Cast converts a pair; `modes` are the row's.
constexpr uint32_t roundings_on(size_t arch, DType src, DType dst, uint32_t modes) {
  using namespace round_bits;
#define ARCH_BEGIN(number_) if (kArchs[arch].number == number_) {
#define ARCH_CAST(from, to, modes_there) \
  if (src == DType::from && dst == DType::to) return modes_there;
#define ARCH_END() }
#include "opkit/isa/archs.inc"
  return modes;
}

constexpr uint32_t roundings_on_any(DType src, DType dst, uint32_t modes) {
  uint32_t all = 0;
  for (size_t arch = 0; arch < kArchCount; ++arch) all |= roundings_on(arch, src, dst, modes);
  return all;
}

}  // namespace opkit
