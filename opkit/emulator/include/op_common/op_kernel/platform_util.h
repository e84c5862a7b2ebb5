/// What kernels ask about the chip. The names are those that public operator libraries call.
#pragma once

#include <cstdint>

namespace Ops {
namespace Base {

/// Bytes of a block of UB, the unit of alignment.
constexpr uint32_t GetUbBlockSize() { return 32; }
/// Bytes of a vector register, or of a repeat where instructions work on memory.
constexpr uint32_t GetVRegSize() { return 256; }

}  // namespace Base
}  // namespace Ops
