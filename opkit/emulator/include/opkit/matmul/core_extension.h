/// Bytes of the running core for what the headers keep there.
#pragma once

#include <cstdint>

#include "opkit/export.h"

namespace opkit::matmul {

constexpr uint32_t kCoreExtensionBytes = 4096;
/// Instr::mode of flags that a Matmul object sets for its own sake, as kQueueSignal is: no buffer that a kernel could
/// double.
constexpr uint8_t kLibraryOrder = 2;
/// They are zero at the start of a launch.
OPKIT_API void* core_extension();
/// A number that no other multiplication has. It and the 2^32 - 1 behind it are the caller's.
OPKIT_API uint64_t next_pass();

}  // namespace opkit::matmul
