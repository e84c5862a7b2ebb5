/// Small helpers and constants that kernels take from the API's headers. Source: Ascend C API, scalar compute and
/// utility functions; general notes for the sizes.
#pragma once

#include <type_traits>

#include "opkit/api/base.h"
#include "opkit/api/half.h"
#include "opkit/api/runtime_abi.h"
#include "opkit/api/std.h"
#include "opkit/api/vector_mask.h"

namespace AscendC {

constexpr uint32_t ONE_BLK_FLOAT_NUM = 8;
constexpr uint32_t ONE_BLK_HALF_NUM = 16;
constexpr uint32_t DEFAULT_C0_SIZE = 32;
constexpr uint32_t DEFAULT_DATA_COPY_NBURST = 1;
constexpr uint32_t DEFAULT_DATA_COPY_STRIDE = 0;
constexpr uint32_t B32_BYTE_SIZE = 4;
constexpr uint32_t B16_BYTE_SIZE = 2;
constexpr uint32_t B32_DATA_NUM_PER_BLOCK = 8;
constexpr uint32_t B16_DATA_NUM_PER_BLOCK = 16;
constexpr uint32_t B32_DATA_NUM_PER_REPEAT = 64;
constexpr uint32_t B16_DATA_NUM_PER_REPEAT = 128;
constexpr uint64_t FULL_MASK = ~0ull;
constexpr int32_t TOTAL_UB_SIZE = opkit::kArchTraits.ub_bytes;
constexpr int32_t TOTAL_L1_SIZE = opkit::kArchTraits.l1_bytes;
constexpr int32_t TOTAL_L0A_SIZE = 64 * 1024;
constexpr int32_t TOTAL_L0B_SIZE = 64 * 1024;
constexpr int32_t TOTAL_L0C_SIZE = opkit::kArchTraits.l0c_bytes;

template <typename T, typename U>
using IsSameType = std::is_same<T, U>;
template <bool condition, typename T, typename U>
using Conditional = std::conditional<condition, T, U>;
using TrueType = std::true_type;
using FalseType = std::false_type;

}  // namespace AscendC

namespace opkit {

/// A number as the helpers below take it: a kernel's own function of the same name, whose parameters are numbers
/// themselves, is preferred whatever the arguments' types.
struct HelperNumber {
  uint32_t value;
  template <typename T, typename = std::enable_if_t<std::is_convertible<T, uint32_t>::value>>
  constexpr HelperNumber(T number) : value(static_cast<uint32_t>(number)) {}
  constexpr operator uint32_t() const { return value; }
};

/// The same of one type, or of any other: of two int32_t the quotient is one, which templates of kernels deduce by.
struct HelperInt {
  int32_t value;
  template <typename T, typename = std::enable_if_t<std::is_same<T, int32_t>::value>>
  constexpr HelperInt(T number) : value(number) {}
};
struct HelperOther {
  uint32_t value;
  template <typename T,
            typename = std::enable_if_t<std::is_convertible<T, uint32_t>::value && !std::is_same<T, int32_t>::value>>
  constexpr HelperOther(T number) : value(static_cast<uint32_t>(number)) {}
};

}  // namespace opkit

namespace AscendC {

constexpr uint32_t DivCeil(uint32_t a, uint32_t b) { return b == 0 ? 0 : (a + b - 1) / b; }
constexpr uint32_t CeilDiv(opkit::HelperNumber a, opkit::HelperNumber b) { return DivCeil(a, b); }
/// Of numbers; that of tensors rounds each element up.
constexpr uint32_t Ceil(opkit::HelperOther a, opkit::HelperOther b) { return DivCeil(a.value, b.value); }
constexpr uint32_t Ceil(opkit::HelperInt a, opkit::HelperOther b) {
  return DivCeil(static_cast<uint32_t>(a.value), b.value);
}
constexpr uint32_t Ceil(opkit::HelperOther a, opkit::HelperInt b) {
  return DivCeil(a.value, static_cast<uint32_t>(b.value));
}
constexpr int32_t CeilDivision(int32_t num1, int32_t num2) { return num2 == 0 ? 0 : (num1 + num2 - 1) / num2; }
constexpr int32_t Ceil(opkit::HelperInt a, opkit::HelperInt b) { return CeilDivision(a.value, b.value); }
constexpr uint32_t AlignUp(opkit::HelperNumber a, opkit::HelperNumber b) { return DivCeil(a, b) * b; }
/// In the type that both numbers have together. Source: public kernels (MLA prolog, templates of products).
template <typename A, typename B, typename = std::enable_if_t<std::is_integral<A>::value && std::is_integral<B>::value>>
constexpr std::common_type_t<A, B> Align(A number, B step) {
  return step == 0 ? 0 : (number + step - 1) / step * step;
}
constexpr uint32_t CeilAlign(opkit::HelperNumber a, opkit::HelperNumber b) { return AlignUp(a, b); }

constexpr int16_t GetDataBlockSizeInBytes() { return 32; }

/// What remains of an older class of helpers.
class AscendCUtils {
 public:
  /// 0: half and bfloat16_t results saturate; 1: they become infinite. Source: Mmad, constraints
  static void SetOverflow(uint64_t ctrlValue) { opkit::set_saturation(opkit::Saturation::Floats, ctrlValue == 0); }
  /// The first `count` lanes, as SetVectorMask.
  template <typename T, bool isSetMask = true>
  static void SetMask(int32_t count) {
    if constexpr (isSetMask) SetVectorMask<T, MaskMode::NORMAL>(count);
  }
  template <typename T, bool isSetMask = true>
  static void SetMask(const uint64_t& maskHigh, const uint64_t& maskLow) {
    if constexpr (isSetMask) SetVectorMask<T, MaskMode::NORMAL>(maskHigh, maskLow);
  }
  /// The global functions of these names; the type says nothing.
  template <typename T>
  static void SetMaskCount() {
    AscendC::SetMaskCount();
  }
  template <typename T>
  static void SetMaskNorm() {
    AscendC::SetMaskNorm();
  }
  /// How many elements the last GatherMask picked. Name and use as in public kernels.
  static int64_t GetRsvdCnt() { return static_cast<int64_t>(opkit::gather_mask_count()); }
  static int32_t GetC0Size() { return 32; }
  static int32_t GetBitSize(int32_t byteSize) { return byteSize * 8; }
  static int32_t GetC0Count(const int32_t dtypeSize) { return dtypeSize == 0 ? 0 : 32 / dtypeSize; }
};

}  // namespace AscendC

#ifndef likely
#define likely(x) __builtin_expect(!!(x), 1)
#endif
#ifndef unlikely
#define unlikely(x) __builtin_expect(!!(x), 0)
#endif
