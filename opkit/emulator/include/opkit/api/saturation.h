/// What becomes of results that their type cannot hold. A launch starts with half and bfloat16_t results in the Inf/NaN
/// mode, which the host sets by default on A2, and with conversions to integers that saturate. Source: Ascend C API,
/// access to special registers; precision conversion; ACL, aclrtSetDeviceSatMode.
#pragma once

#include "opkit/api/base.h"
#include "opkit/api/runtime_abi.h"

namespace opkit {

constexpr int8_t kFloatSaturationBit = 48;  ///< of the control register: 0 saturates, 1 keeps infinities and NaN

}  // namespace opkit

namespace AscendC {

enum class SaturationMode : uint8_t {
  FLOAT,  ///< on: an infinite half or bfloat16_t result becomes the largest number, NaN becomes 0
  CAST    ///< off: a conversion to an integer keeps the low bits of a value that is too large
};

template <SaturationMode mode>
inline void SetSaturationFlag(bool enableSat) {
  opkit::set_saturation(mode == SaturationMode::FLOAT ? opkit::Saturation::Floats : opkit::Saturation::Casts,
                        enableSat);
}
template <SaturationMode mode>
inline bool GetSaturationFlag() {
  return opkit::saturation(mode == SaturationMode::FLOAT ? opkit::Saturation::Floats : opkit::Saturation::Casts);
}

/// Bits of the control register; of them this chip documents the one that SaturationMode::FLOAT is about.
#define OPKIT_ASSERT_CTRL(name, startBit, endBit)                                                         \
  static_assert((startBit) == ::opkit::kFloatSaturationBit && (endBit) == ::opkit::kFloatSaturationBit && \
                    ::opkit::kArchTraits.has_saturation_bit,                                              \
                name ": bit 48 on arch 2201 is the only one of the control register that is documented")
template <int8_t startBit, int8_t endBit>
inline void SetCtrlSpr(int64_t value, opkit::Where where = opkit::Where::here()) {
  OPKIT_ASSERT_CTRL("SetCtrlSpr", startBit, endBit);
  if (value != 0 && value != 1) opkit::illegal_operand("SetCtrlSpr: one bit holds 0 or 1", where);
  opkit::set_saturation(opkit::Saturation::Floats, value == 0);
}
template <int8_t startBit, int8_t endBit>
inline int64_t GetCtrlSpr() {
  OPKIT_ASSERT_CTRL("GetCtrlSpr", startBit, endBit);
  return opkit::saturation(opkit::Saturation::Floats) ? 0 : 1;
}
#undef OPKIT_ASSERT_CTRL

}  // namespace AscendC
