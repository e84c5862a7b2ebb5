/// Bytes of the running core for what the headers keep there.
#pragma once

#include <cstdint>

#include "opkit/export.h"

namespace opkit::matmul {

constexpr uint32_t kCoreExtensionBytes = 4096;
/// They are zero at the start of a launch.
OPKIT_API void* core_extension();

}  // namespace opkit::matmul
