/// Reductions, under their names since CANN 9.1 and before. Source: Ascend C API, reduction; appendix, changed names.
#pragma once

#include "opkit/api/vector_common.h"

namespace opkit::vec {

template <typename T>
inline Instr reduce(Op op, const AscendC::LocalTensor<T>& dst, const AscendC::LocalTensor<T>& src,
                    const AscendC::LocalTensor<T>& work, bool has_index, Where where) {
  Instr instr = binary(op, dst.operand(), src.operand(), work.operand(), where);
  instr.mode = has_index ? 1 : 0;
  return instr;
}

/// Strides as they are given: the destination's counts results of one repeat.
template <bool isSetMask, typename T, typename Mask>
inline void repeat_reduce(Op op, const AscendC::LocalTensor<T>& dst, const AscendC::LocalTensor<T>& src, Mask mask,
                          int32_t repeat, int32_t dst_repeat, int32_t src_block, int32_t src_repeat,
                          AscendC::ReduceOrder order, Where where) {
  Instr instr =
      unary(op, strided(dst.operand(), 1, static_cast<uint32_t>(dst_repeat)),
            strided(src.operand(), static_cast<uint32_t>(src_block), static_cast<uint32_t>(src_repeat)), where);
  instr.mode = static_cast<uint8_t>(order);
  set_mask<isSetMask>(instr, sizeof(T), mask, static_cast<uint32_t>(repeat));
  issue(instr);
}

constexpr Op by_type(AscendC::ReduceType type, Op sum, Op max, Op min) {
  return type == AscendC::ReduceType::SUM ? sum : type == AscendC::ReduceType::MAX ? max : min;
}

/// A mask parameter: bits stay a pointer, int32_t becomes the number of lanes.
inline const uint64_t* mask_of(const uint64_t* mask) { return mask; }
inline uint64_t mask_of(int32_t mask) { return mask < 0 ? 0 : static_cast<uint64_t>(mask); }

}  // namespace opkit::vec

namespace AscendC {

// The last arguments are what follows the documented parameters of all, with its comma.
#define OPKIT_REDUCE_REPEATS(name, mask_parameter, has_index, ...)                                                  \
  template <typename T>                                                                                             \
  inline void name(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LocalTensor<T>& sharedTmpBuffer,     \
                   mask_parameter, const int32_t repeatTime, const int32_t srcRepStride, __VA_ARGS__ OPKIT_HERE) {  \
    OPKIT_ASSERT_TYPE(name, T);                                                                                     \
    ::opkit::Instr instr = ::opkit::vec::reduce(::opkit::Op::name, dst, src, sharedTmpBuffer, has_index, where);    \
    instr.src[0] = ::opkit::vec::strided(instr.src[0], 1, static_cast<uint32_t>(srcRepStride));                     \
    ::opkit::vec::set_mask<true>(instr, sizeof(T), ::opkit::vec::mask_of(mask), static_cast<uint32_t>(repeatTime)); \
    ::opkit::issue(instr);                                                                                          \
  }
#define OPKIT_REDUCE(name, has_index, ...)                                                                       \
  template <typename T, bool isSetMask = true>                                                                   \
  inline void name(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LocalTensor<T>& sharedTmpBuffer,  \
                   const int32_t count, __VA_ARGS__ OPKIT_HERE) {                                                \
    OPKIT_ASSERT_TYPE(name, T);                                                                                  \
    ::opkit::Instr instr = ::opkit::vec::reduce(::opkit::Op::name, dst, src, sharedTmpBuffer, has_index, where); \
    ::opkit::vec::set_count<isSetMask>(instr, static_cast<uint32_t>(count));                                     \
    ::opkit::issue(instr);                                                                                       \
  }                                                                                                              \
  OPKIT_REDUCE_REPEATS(name, const uint64_t* mask, has_index, __VA_ARGS__)                                       \
  OPKIT_REDUCE_REPEATS(name, const int32_t mask, has_index, __VA_ARGS__)
OPKIT_REDUCE(ReduceSum, false, )
OPKIT_REDUCE(ReduceMax, calIndex, bool calIndex = false, )
OPKIT_REDUCE(ReduceMin, calIndex, bool calIndex = false, )
#undef OPKIT_REDUCE
#undef OPKIT_REDUCE_REPEATS

#define OPKIT_BOTH_MASKS(macro, ...) macro(const uint64_t* mask, __VA_ARGS__) macro(const int32_t mask, __VA_ARGS__)

#define OPKIT_WHOLE_SUM(mask_parameter, name)                                                                        \
  template <typename T, bool isSetMask = true>                                                                       \
  inline void name(const LocalTensor<T>& dst, const LocalTensor<T>& src, mask_parameter, const int32_t repeatTime,   \
                   const int32_t dstRepStride, const int32_t srcBlkStride, const int32_t srcRepStride, OPKIT_HERE) { \
    OPKIT_ASSERT_TYPE(name, T);                                                                                      \
    ::opkit::vec::repeat_reduce<isSetMask>(::opkit::Op::name, dst, src, ::opkit::vec::mask_of(mask), repeatTime,     \
                                           dstRepStride, srcBlkStride, srcRepStride, ReduceOrder::ORDER_VALUE_INDEX, \
                                           where);                                                                   \
  }
#define OPKIT_WHOLE_EXTREME(mask_parameter, name)                                                                  \
  template <typename T, bool isSetMask = true>                                                                     \
  inline void name(const LocalTensor<T>& dst, const LocalTensor<T>& src, mask_parameter, const int32_t repeatTime, \
                   const int32_t dstRepStride, const int32_t srcBlkStride, const int32_t srcRepStride,             \
                   ReduceOrder order = ReduceOrder::ORDER_VALUE_INDEX, OPKIT_HERE) {                               \
    OPKIT_ASSERT_TYPE(name, T);                                                                                    \
    ::opkit::vec::repeat_reduce<isSetMask>(::opkit::Op::name, dst, src, ::opkit::vec::mask_of(mask), repeatTime,   \
                                           dstRepStride, srcBlkStride, srcRepStride, order, where);                \
  }
// The older names of block and pair reductions take the repeat times before the mask.
#define OPKIT_GROUPS(mask_parameter, name)                                                                           \
  template <typename T, bool isSetMask = true>                                                                       \
  inline void name(const LocalTensor<T>& dst, const LocalTensor<T>& src, const int32_t repeatTime, mask_parameter,   \
                   const int32_t dstRepStride, const int32_t srcBlkStride, const int32_t srcRepStride, OPKIT_HERE) { \
    OPKIT_ASSERT_TYPE(name, T);                                                                                      \
    ::opkit::vec::repeat_reduce<isSetMask>(::opkit::Op::name, dst, src, ::opkit::vec::mask_of(mask), repeatTime,     \
                                           dstRepStride, srcBlkStride, srcRepStride, ReduceOrder::ORDER_VALUE_INDEX, \
                                           where);                                                                   \
  }
OPKIT_BOTH_MASKS(OPKIT_WHOLE_SUM, WholeReduceSum)
OPKIT_BOTH_MASKS(OPKIT_WHOLE_EXTREME, WholeReduceMax)
OPKIT_BOTH_MASKS(OPKIT_WHOLE_EXTREME, WholeReduceMin)
OPKIT_BOTH_MASKS(OPKIT_GROUPS, BlockReduceSum)
OPKIT_BOTH_MASKS(OPKIT_GROUPS, BlockReduceMax)
OPKIT_BOTH_MASKS(OPKIT_GROUPS, BlockReduceMin)
OPKIT_BOTH_MASKS(OPKIT_GROUPS, PairReduceSum)
#undef OPKIT_WHOLE_SUM
#undef OPKIT_WHOLE_EXTREME
#undef OPKIT_GROUPS

template <typename T, bool isSetMask = true>
inline void RepeatReduceSum(const LocalTensor<T>& dst, const LocalTensor<T>& src, const int32_t repeat,
                            const int32_t elemsInOneRepeat, const int32_t dstBlkStride, const int32_t srcBlkStride,
                            const int32_t dstRepStride, const int32_t srcRepStride, OPKIT_HERE) {
  (void)dstBlkStride;  // has no meaning. Source: RepeatReduceSum, parameters
  WholeReduceSum<T, isSetMask>(dst, src, elemsInOneRepeat, repeat, dstRepStride, srcBlkStride, srcRepStride, where);
}

// The names since CANN 9.1.
#define OPKIT_RENAMED(mask_parameter, name, sum, max, min, order, ...)                                             \
  template <ReduceType reduceType, typename T, typename U, bool isSetMask = true>                                  \
  inline void name(const LocalTensor<T>& dst, const LocalTensor<U>& src, mask_parameter, const int32_t repeatTime, \
                   const int32_t dstRepStride, const int32_t srcBlkStride, const int32_t srcRepStride,             \
                   __VA_ARGS__ OPKIT_HERE) {                                                                       \
    OPKIT_ASSERT_TYPE(sum, T);                                                                                     \
    constexpr ::opkit::Op op =                                                                                     \
        ::opkit::vec::by_type(reduceType, ::opkit::Op::sum, ::opkit::Op::max, ::opkit::Op::min);                   \
    ::opkit::vec::repeat_reduce<isSetMask>(op, dst, src, ::opkit::vec::mask_of(mask), repeatTime, dstRepStride,    \
                                           srcBlkStride, srcRepStride, order, where);                              \
  }
OPKIT_BOTH_MASKS(OPKIT_RENAMED, ReduceRepeat, WholeReduceSum, WholeReduceMax, WholeReduceMin, order,
                 ReduceOrder order = ReduceOrder::ORDER_VALUE_INDEX, )
OPKIT_BOTH_MASKS(OPKIT_RENAMED, ReduceDataBlock, BlockReduceSum, BlockReduceMax, BlockReduceMin,
                 ReduceOrder::ORDER_VALUE_INDEX, )
#undef OPKIT_RENAMED

#define OPKIT_PAIRS(mask_parameter, unused)                                                                    \
  template <ReduceType reduceType, typename T, typename U, bool isSetMask = true>                              \
  inline void ReducePairElem(const LocalTensor<T>& dst, const LocalTensor<U>& src, mask_parameter,             \
                             const int32_t repeatTime, const int32_t dstRepStride, const int32_t srcBlkStride, \
                             const int32_t srcRepStride, OPKIT_HERE) {                                         \
    static_assert(reduceType == ReduceType::SUM, "ReducePairElem: only ReduceType::SUM exists");               \
    PairReduceSum<T, isSetMask>(dst, src, repeatTime, mask, dstRepStride, srcBlkStride, srcRepStride, where);  \
  }
OPKIT_BOTH_MASKS(OPKIT_PAIRS, )
#undef OPKIT_PAIRS
#undef OPKIT_BOTH_MASKS

}  // namespace AscendC
