/// The mask register. Source: Ascend C API, mask operations.
#pragma once

#include "opkit/api/enums_vector.h"
#include "opkit/api/runtime_abi.h"

namespace AscendC {

template <typename T, MaskMode mode = MaskMode::NORMAL>
inline void SetVectorMask(const uint64_t maskHigh, const uint64_t maskLow) {
  opkit::set_vector_mask(maskHigh, maskLow);
}

/// The first `len` lanes of each repeat; in counter mode the first `len` elements.
template <typename T, MaskMode mode = MaskMode::NORMAL>
inline void SetVectorMask(int32_t len) {
  const uint64_t count = len < 0 ? 0 : static_cast<uint64_t>(len);
  if (mode == MaskMode::COUNTER) {
    opkit::set_vector_mask(0, count);
    return;
  }
  const uint64_t low = count >= 64 ? ~0ull : (1ull << count) - 1;
  const uint64_t high = count >= 128 ? ~0ull : count > 64 ? (1ull << (count - 64)) - 1 : 0;
  opkit::set_vector_mask(high, low);
}

inline void ResetMask() { opkit::set_vector_mask(~0ull, ~0ull); }

}  // namespace AscendC
