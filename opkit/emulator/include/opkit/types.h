/// The small enumerations that kernels, the library and Python share.
#pragma once

#include <cstdint>

namespace opkit {

/// Changes whenever a kernel built before cannot be loaded any more.
constexpr uint32_t kAbiVersion = 9;

/// Lane data types. `opkit/dtypes.py` names the same enumerators in its `code` column; a test compares them.
enum class DType : uint8_t { F16, BF16, F32, S8, U8, S16, U16, S32, U32, S64, U64, BOOL, F64, S4, kCount };

constexpr uint32_t size_bytes(DType type) {
  switch (type) {
    case DType::S8:
    case DType::U8:
    case DType::BOOL:
    case DType::S4: return 1;
    case DType::F16:
    case DType::BF16:
    case DType::S16:
    case DType::U16: return 2;
    case DType::F32:
    case DType::S32:
    case DType::U32: return 4;
    default: return 8;
  }
}

/// Bytes of `count` elements: two of int4b_t share one.
constexpr uint64_t span_bytes(DType type, uint64_t count) {
  return type == DType::S4 ? (count + 1) / 2 : count * size_bytes(type);
}

/// Physical memories of a sub-core, and global memory.
enum class Space : uint8_t {
#define OPKIT_SPACE(name) name,
#include "opkit/isa/units.inc"
  kCount
};

/// In-order instruction queues of a sub-core; ALL stands for each.
enum class Pipe : uint8_t {
#define OPKIT_PIPE(name) name,
#include "opkit/isa/units.inc"
  ALL,
  kCount
};

/// A position in the kernel's source; taken by default arguments, so it is the caller's.
struct Where {
  const char* file;
  uint32_t line;
  static constexpr Where here(const char* file = __builtin_FILE(), uint32_t line = __builtin_LINE()) {
    return {file, line};
  }
};

}  // namespace opkit
