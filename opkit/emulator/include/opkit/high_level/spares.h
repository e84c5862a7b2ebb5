/// Sizes of temporary space that functions of the high-level library and the host's Get...TmpSize functions agree on.
#pragma once

#include <cstdint>

namespace opkit::high_level {

/// A part begins at a multiple of a repeat of floats, so that its tensors stay aligned.
constexpr uint32_t kPartElements = 64;

// Tensors of temporary space beside converted sources; for other functions they are in elementwise.inc.
constexpr uint32_t kExpSpares = 2;
constexpr uint32_t kSwiGLUSpares = 2;
constexpr uint32_t kSwishSpares = 1;
constexpr uint32_t kAxpySpares = 1;
constexpr uint32_t kGeluSpares = 1;
constexpr uint32_t kFasterGeluV2Spares = 2;
/// One more where a scalar takes the place of a tensor.
constexpr uint32_t kPowerSpares = 4;
constexpr uint32_t kIntegerPowerSpares = 5;

}  // namespace opkit::high_level
