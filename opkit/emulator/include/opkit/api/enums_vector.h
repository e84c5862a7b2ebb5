/// Enumerations and stride parameters of vector instructions. Source: Ascend C API, auxiliary data structures, and
/// the pages of Cast, Compare, Select, ReduceRepeat, Brcb, Copy.
#pragma once

#include <cstdint>

namespace AscendC {

enum class RoundMode : uint8_t {
  CAST_NONE,
  CAST_RINT,
  CAST_FLOOR,
  CAST_CEIL,
  CAST_ROUND,
  CAST_TRUNC,
  CAST_ODD,
  CAST_HYBRID
};
enum class CMPMODE : uint8_t { LT, GT, EQ, LE, GE, NE };
enum class SELMODE : uint8_t { VSEL_CMPMASK_SPR, VSEL_TENSOR_SCALAR_MODE, VSEL_TENSOR_TENSOR_MODE };
enum class ReduceType : uint8_t { SUM, MAX, MIN };
enum class ReduceOrder : uint8_t { ORDER_VALUE_INDEX, ORDER_INDEX_VALUE, ORDER_ONLY_VALUE, ORDER_ONLY_INDEX };
enum class MaskMode : uint8_t { NORMAL, COUNTER };

struct UnaryRepeatParams {
  constexpr UnaryRepeatParams() = default;
  constexpr UnaryRepeatParams(uint16_t dst_block, uint16_t src_block, uint8_t dst_repeat, uint8_t src_repeat)
      : dstBlkStride(dst_block), srcBlkStride(src_block), dstRepStride(dst_repeat), srcRepStride(src_repeat) {}
  constexpr UnaryRepeatParams(uint16_t dst_block, uint16_t src_block, uint8_t dst_repeat, uint8_t src_repeat,
                              bool is_half_block)
      : UnaryRepeatParams(dst_block, src_block, dst_repeat, src_repeat) {
    halfBlock = is_half_block;
  }

  uint32_t blockNumber = 8;
  uint16_t dstBlkStride = 1;
  uint16_t srcBlkStride = 1;
  uint8_t dstRepStride = 8;
  uint8_t srcRepStride = 8;
  bool repeatStrideMode = false;
  bool strideSizeMode = false;
  bool halfBlock = false;
};

struct BinaryRepeatParams {
  constexpr BinaryRepeatParams() = default;
  constexpr BinaryRepeatParams(uint8_t dst_block, uint8_t src0_block, uint8_t src1_block, uint8_t dst_repeat,
                               uint8_t src0_repeat, uint8_t src1_repeat)
      : dstBlkStride(dst_block),
        src0BlkStride(src0_block),
        src1BlkStride(src1_block),
        dstRepStride(dst_repeat),
        src0RepStride(src0_repeat),
        src1RepStride(src1_repeat) {}

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

struct BrcbRepeatParams {
  constexpr BrcbRepeatParams() = default;
  constexpr BrcbRepeatParams(uint16_t dst_block, uint16_t dst_repeat)
      : dstBlkStride(dst_block), dstRepStride(dst_repeat) {}

  uint32_t blockNumber = 8;
  uint16_t dstBlkStride = 1;
  uint16_t dstRepStride = 8;
};

struct CopyRepeatParams {
  constexpr CopyRepeatParams() = default;
  constexpr CopyRepeatParams(uint16_t dst_block, uint16_t src_block, uint16_t dst_repeat, uint16_t src_repeat)
      : dstStride(dst_block), srcStride(src_block), dstRepeatSize(dst_repeat), srcRepeatSize(src_repeat) {}

  uint16_t dstStride = 1;
  uint16_t srcStride = 1;
  uint16_t dstRepeatSize = 8;
  uint16_t srcRepeatSize = 8;
};

}  // namespace AscendC
