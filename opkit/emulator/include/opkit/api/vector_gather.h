/// Gatherb and GatherMask. Source: Ascend C API, gather and scatter; compare and select.
#pragma once

#include "opkit/api/vector_common.h"

namespace AscendC {

struct GatherRepeatParams {
  constexpr GatherRepeatParams() = default;
  constexpr GatherRepeatParams(uint8_t dst_block, uint8_t dst_repeat)
      : dstBlkStride(dst_block), dstRepStride(dst_repeat) {}

  // Only the destination's strides have a meaning.
  uint32_t blockNumber = 8;
  uint8_t dstBlkStride = 1;
  uint8_t src0BlkStride = 1;
  uint8_t src1BlkStride = 1;
  uint8_t dstRepStride = 8;
  uint8_t src0RepStride = 8;
  uint8_t src1RepStride = 8;
  bool repeatStrideMode = false;
  bool strideSizeMode = false;
};

/// Elements of `src` go to the byte offsets `dstBaseAddr` + `dstOffset` of `dst`.
template <typename T>
inline void Scatter(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LocalTensor<uint32_t>& dstOffset,
                    const uint32_t dstBaseAddr, const uint32_t count, OPKIT_HERE) {
  OPKIT_ASSERT_TYPE(Scatter, T);
  opkit::Instr instr = opkit::vec::binary(opkit::Op::Scatter, dst.operand(), src.operand(), dstOffset.operand(), where);
  instr.scalar_bits[0] = dstBaseAddr;
  opkit::vec::set_count<true>(instr, count);
  opkit::issue(instr);
}
#define OPKIT_SCATTER(mask_parameter)                                                                               \
  template <typename T>                                                                                             \
  inline void Scatter(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LocalTensor<uint32_t>& dstOffset, \
                      const uint32_t dstBaseAddr, mask_parameter, const uint8_t repeatTime,                         \
                      const uint8_t srcRepStride, OPKIT_HERE) {                                                     \
    OPKIT_ASSERT_TYPE(Scatter, T);                                                                                  \
    ::opkit::Instr instr =                                                                                          \
        ::opkit::vec::binary(::opkit::Op::Scatter, dst.operand(), src.operand(), dstOffset.operand(), where);       \
    instr.scalar_bits[0] = dstBaseAddr;                                                                             \
    instr.src[0] = ::opkit::vec::strided(instr.src[0], 1, srcRepStride);                                            \
    ::opkit::vec::set_mask<true>(instr, sizeof(T), mask, repeatTime);                                               \
    ::opkit::issue(instr);                                                                                          \
  }
OPKIT_SCATTER(const uint64_t* mask)
OPKIT_SCATTER(const uint64_t mask)
#undef OPKIT_SCATTER

/// Data blocks of `src` at the byte offsets in `offset`, eight a repeat.
template <typename T>
inline void Gatherb(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LocalTensor<uint32_t>& offset,
                    const uint8_t repeatTime, const GatherRepeatParams& repeatParams, OPKIT_HERE) {
  OPKIT_ASSERT_TYPE(Gatherb, T);
  opkit::Instr instr = opkit::vec::binary(opkit::Op::Gatherb, dst.operand(), src.operand(), offset.operand(), where);
  const uint32_t block =
      repeatParams.dstBlkStride == 0 ? 1 : repeatParams.dstBlkStride;  // Source: Gatherb, constraints
  instr.dst = opkit::vec::strided(instr.dst, block, repeatParams.dstRepStride);
  opkit::vec::set_lanes(instr, opkit::kRepeatBytes / sizeof(T), repeatTime);
  opkit::issue(instr);
}

struct GatherMaskParams {
  constexpr GatherMaskParams() = default;
  constexpr GatherMaskParams(uint8_t src0_block, uint16_t repeat, uint16_t src0_repeat, uint16_t src1_repeat)
      : src0BlockStride(src0_block),
        repeatTimes(repeat),
        src0RepeatStride(src0_repeat),
        src1RepeatStride(src1_repeat) {}

  uint8_t src0BlockStride = 1;
  uint16_t repeatTimes = 0;
  uint16_t src0RepeatStride = 0;
  uint16_t src1RepeatStride = 0;
};

enum class GatherMaskMode : uint8_t { DEFAULT };
constexpr GatherMaskMode defaultGatherMaskMode = GatherMaskMode::DEFAULT;

}  // namespace AscendC

namespace opkit::vec {

/// Fills and issues a GatherMask; returns how many elements it picked. `pattern` 0: the pattern is src[1].
template <typename T>
inline uint64_t gather_mask(Instr& instr, uint8_t pattern, bool is_counter, uint32_t mask,
                            const AscendC::GatherMaskParams& params) {
  OPKIT_ASSERT_TYPE(GatherMask, T);
  instr.mode = static_cast<uint8_t>(pattern << 1 | (is_counter ? 1 : 0));
  instr.src[0] = strided(instr.src[0], params.src0BlockStride, params.src0RepeatStride);
  const uint32_t lanes = kRepeatBytes / sizeof(T);
  set_lanes(instr, is_counter ? mask : lanes, params.repeatTimes);
  issue(instr);
  return gather_mask_count();
}

}  // namespace opkit::vec

namespace AscendC {

/// The pattern is one of the built-in ones, 1 to 7.
template <typename T, GatherMaskMode mode = defaultGatherMaskMode>
inline void GatherMask(const LocalTensor<T>& dst, const LocalTensor<T>& src0, const uint8_t src1Pattern,
                       const bool reduceMode, const uint32_t mask, const GatherMaskParams& gatherMaskParams,
                       uint64_t& rsvdCnt, OPKIT_HERE) {
  opkit::Instr instr = opkit::vec::unary(opkit::Op::GatherMask, dst.operand(), src0.operand(), where);
  // More than seven bits hold a wrong pattern too.
  const uint8_t pattern = src1Pattern == 0 || src1Pattern > 127 ? 127 : src1Pattern;
  rsvdCnt = opkit::vec::gather_mask<T>(instr, pattern, reduceMode, mask, gatherMaskParams);
}

/// The pattern's bits lie in a tensor of unsigned integers as wide as T.
template <typename T, typename U, GatherMaskMode mode = defaultGatherMaskMode>
inline void GatherMask(const LocalTensor<T>& dst, const LocalTensor<T>& src0, const LocalTensor<U>& src1Pattern,
                       const bool reduceMode, const uint32_t mask, const GatherMaskParams& gatherMaskParams,
                       uint64_t& rsvdCnt, OPKIT_HERE) {
  static_assert(sizeof(U) == sizeof(T) && static_cast<U>(-1) > static_cast<U>(0),
                "GatherMask: the pattern's elements are uint16_t or uint32_t, as wide as the source's");
  opkit::Instr instr =
      opkit::vec::binary(opkit::Op::GatherMask, dst.operand(), src0.operand(), src1Pattern.operand(), where);
  instr.src[1] = opkit::vec::strided(instr.src[1], 1, gatherMaskParams.src1RepeatStride);
  rsvdCnt = opkit::vec::gather_mask<T>(instr, 0, reduceMode, mask, gatherMaskParams);
}

}  // namespace AscendC
