/// Duplicate, CreateVecIndex, Brcb, Copy, Gather. Source: Ascend C API, data filling; UB to UB with a mask; gather.
#pragma once

#include "opkit/api/vector_common.h"

namespace AscendC {

#define OPKIT_FILL(name)                                                                                \
  template <typename T, bool isSetMask = true>                                                          \
  inline void name(const LocalTensor<T>& dst, const T& scalarValue, const int32_t& count, OPKIT_HERE) { \
    OPKIT_ASSERT_TYPE(name, T);                                                                         \
    ::opkit::Instr instr = ::opkit::vec::start(::opkit::Op::name, where);                               \
    instr.dst = dst.operand();                                                                          \
    ::opkit::vec::set_scalar(instr, scalarValue);                                                       \
    ::opkit::vec::set_count<isSetMask>(instr, static_cast<uint32_t>(count));                            \
    ::opkit::issue(instr);                                                                              \
  }                                                                                                     \
  OPKIT_FILL_REPEATS(name, const uint64_t* mask)                                                        \
  OPKIT_FILL_REPEATS(name, uint64_t mask)
#define OPKIT_FILL_REPEATS(name, mask_parameter)                                                              \
  template <typename T, bool isSetMask = true>                                                                \
  inline void name(const LocalTensor<T>& dst, const T& scalarValue, mask_parameter, const uint8_t repeatTime, \
                   const uint16_t dstBlockStride, const uint8_t dstRepeatStride, OPKIT_HERE) {                \
    OPKIT_ASSERT_TYPE(name, T);                                                                               \
    ::opkit::Instr instr = ::opkit::vec::start(::opkit::Op::name, where);                                     \
    instr.dst = ::opkit::vec::strided(dst.operand(), dstBlockStride, dstRepeatStride);                        \
    ::opkit::vec::set_scalar(instr, scalarValue);                                                             \
    ::opkit::vec::set_mask<isSetMask>(instr, sizeof(T), mask, repeatTime);                                    \
    ::opkit::issue(instr);                                                                                    \
  }
OPKIT_FILL(Duplicate)
OPKIT_FILL(CreateVecIndex)
#undef OPKIT_FILL
#undef OPKIT_FILL_REPEATS

template <typename T>
inline void Brcb(const LocalTensor<T>& dst, const LocalTensor<T>& src, const uint8_t repeatTime,
                 const BrcbRepeatParams& repeatParams, OPKIT_HERE) {
  OPKIT_ASSERT_TYPE(Brcb, T);
  opkit::Instr instr = opkit::vec::unary(opkit::Op::Brcb, dst.operand(), src.operand(), where);
  instr.dst = opkit::vec::strided(instr.dst, repeatParams.dstBlkStride, repeatParams.dstRepStride);
  instr.repeat = repeatTime;
  opkit::issue(instr);
}

// Of each data block of `src`, by padMode: 0 its edge, 1 its mirror image, 2 that without the edge; padSide says which
// edge. The mask and the count say what is written, not what is read.
#define OPKIT_PADDING(isSetMask_parameter, shape_parameters, ...)                                                \
  template <typename T OPKIT_UNPACK isSetMask_parameter>                                                         \
  inline void VectorPadding(const LocalTensor<T>& dst, const LocalTensor<T>& src, const uint8_t padMode,         \
                            const bool padSide, OPKIT_UNPACK shape_parameters, OPKIT_HERE) {                     \
    OPKIT_ASSERT_TYPE(VectorPadding, T);                                                                         \
    ::opkit::Instr instr = ::opkit::vec::unary(::opkit::Op::VectorPadding, dst.operand(), src.operand(), where); \
    instr.mode = static_cast<uint8_t>((padMode > 2 ? 3 : padMode) | (padSide ? 4 : 0));                          \
    __VA_ARGS__;                                                                                                 \
    ::opkit::issue(instr);                                                                                       \
  }
#define OPKIT_UNPACK(...) __VA_ARGS__
OPKIT_PADDING((), (const uint32_t count), ::opkit::vec::set_count<true>(instr, count))
#define OPKIT_PADDING_REPEATS(mask_parameter)                                                      \
  OPKIT_PADDING((, bool isSetMask = true),                                                         \
                (mask_parameter, const uint8_t repeatTime, const UnaryRepeatParams& repeatParams), \
                ::opkit::vec::set_mask<isSetMask>(instr, sizeof(T), mask, repeatTime);             \
                ::opkit::vec::set_strides(instr, repeatParams))
OPKIT_PADDING_REPEATS(const uint64_t* mask)
OPKIT_PADDING_REPEATS(const uint64_t mask)
#undef OPKIT_PADDING
#undef OPKIT_PADDING_REPEATS
#undef OPKIT_UNPACK

#define OPKIT_COPY(mask_parameter)                                                                                 \
  template <typename T, bool isSetMask = true>                                                                     \
  inline void Copy(const LocalTensor<T>& dst, const LocalTensor<T>& src, mask_parameter, const uint8_t repeatTime, \
                   const CopyRepeatParams& repeatParams, OPKIT_HERE) {                                             \
    OPKIT_ASSERT_TYPE(Copy, T);                                                                                    \
    ::opkit::Instr instr = ::opkit::vec::unary(::opkit::Op::Copy, dst.operand(), src.operand(), where);            \
    instr.dst = ::opkit::vec::strided(instr.dst, repeatParams.dstStride, repeatParams.dstRepeatSize);              \
    instr.src[0] = ::opkit::vec::strided(instr.src[0], repeatParams.srcStride, repeatParams.srcRepeatSize);        \
    ::opkit::vec::set_mask<isSetMask>(instr, sizeof(T), mask, repeatTime);                                         \
    ::opkit::issue(instr);                                                                                         \
  }
OPKIT_COPY(const uint64_t* mask)
OPKIT_COPY(const uint64_t mask)
#undef OPKIT_COPY

template <typename T>
inline void Gather(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LocalTensor<uint32_t>& srcOffset,
                   const uint32_t srcBaseAddr, const uint32_t count, OPKIT_HERE) {
  OPKIT_ASSERT_TYPE(Gather, T);
  opkit::Instr instr = opkit::vec::binary(opkit::Op::Gather, dst.operand(), src.operand(), srcOffset.operand(), where);
  instr.scalar_bits[0] = srcBaseAddr;
  opkit::vec::set_count<true>(instr, count);
  opkit::issue(instr);
}
#define OPKIT_GATHER(mask_parameter)                                                                               \
  template <typename T>                                                                                            \
  inline void Gather(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LocalTensor<uint32_t>& srcOffset, \
                     const uint32_t srcBaseAddr, mask_parameter, const uint8_t repeatTime,                         \
                     const uint16_t dstRepStride, OPKIT_HERE) {                                                    \
    OPKIT_ASSERT_TYPE(Gather, T);                                                                                  \
    ::opkit::Instr instr =                                                                                         \
        ::opkit::vec::binary(::opkit::Op::Gather, dst.operand(), src.operand(), srcOffset.operand(), where);       \
    instr.scalar_bits[0] = srcBaseAddr;                                                                            \
    instr.dst = ::opkit::vec::strided(instr.dst, 1, dstRepStride);                                                 \
    ::opkit::vec::set_mask<true>(instr, sizeof(T), mask, repeatTime);                                              \
    ::opkit::issue(instr);                                                                                         \
  }
OPKIT_GATHER(const uint64_t* mask)
OPKIT_GATHER(const uint64_t mask)
#undef OPKIT_GATHER

}  // namespace AscendC
