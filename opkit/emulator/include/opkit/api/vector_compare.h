/// Compare, Compares, Select and the compare register. Source: Ascend C API, compare and select.
#pragma once

#include "opkit/api/vector_common.h"

namespace opkit::vec {

/// A destination of bits, whatever holds them: documents say int8_t and uint8_t, public kernels also compare into the
/// uint16_t that Not goes on with, and into a tensor of the sources' type that only Select reads.
template <typename T>
inline Operand comparison_bits(const AscendC::LocalTensor<T>& tensor) {
  Operand operand = tensor.operand();
  operand.dtype = DType::U8;
  return operand;
}

}  // namespace opkit::vec

namespace AscendC {

template <typename T, typename U>
inline void Compare(const LocalTensor<U>& dst, const LocalTensor<T>& src0, const LocalTensor<T>& src1, CMPMODE cmpMode,
                    uint32_t count, OPKIT_HERE) {
  OPKIT_ASSERT_TYPE(Compare, T);
  opkit::Instr instr =
      opkit::vec::binary(opkit::Op::Compare, opkit::vec::comparison_bits(dst), src0.operand(), src1.operand(), where);
  instr.mode = static_cast<uint8_t>(cmpMode);
  opkit::vec::set_count<true>(instr, count);
  opkit::issue(instr);
}

/// Compares with a scalar; CompareScalar is its name before CANN 9.
#define OPKIT_COMPARE_SCALAR(name)                                                                                  \
  template <typename T, typename U>                                                                                 \
  inline void name(const LocalTensor<U>& dst, const LocalTensor<T>& src0, const T src1Scalar, CMPMODE cmpMode,      \
                   uint32_t count, OPKIT_HERE) {                                                                    \
    OPKIT_ASSERT_TYPE(CompareScalar, T);                                                                            \
    ::opkit::Instr instr =                                                                                          \
        ::opkit::vec::unary(::opkit::Op::CompareScalar, ::opkit::vec::comparison_bits(dst), src0.operand(), where); \
    instr.mode = static_cast<uint8_t>(cmpMode);                                                                     \
    ::opkit::vec::set_scalar(instr, src1Scalar);                                                                    \
    ::opkit::vec::set_count<true>(instr, count);                                                                    \
    ::opkit::issue(instr);                                                                                          \
  }                                                                                                                 \
  OPKIT_COMPARE_SCALAR_REPEATS(name, const uint64_t* mask)                                                          \
  OPKIT_COMPARE_SCALAR_REPEATS(name, const uint64_t mask)
#define OPKIT_COMPARE_SCALAR_REPEATS(name, mask_parameter)                                                          \
  template <typename T, typename U, bool isSetMask = true>                                                          \
  inline void name(const LocalTensor<U>& dst, const LocalTensor<T>& src0, const T src1Scalar, CMPMODE cmpMode,      \
                   mask_parameter, uint8_t repeatTime, const UnaryRepeatParams& repeatParams, OPKIT_HERE) {         \
    OPKIT_ASSERT_TYPE(CompareScalar, T);                                                                            \
    ::opkit::Instr instr =                                                                                          \
        ::opkit::vec::unary(::opkit::Op::CompareScalar, ::opkit::vec::comparison_bits(dst), src0.operand(), where); \
    instr.mode = static_cast<uint8_t>(cmpMode);                                                                     \
    ::opkit::vec::set_scalar(instr, src1Scalar);                                                                    \
    ::opkit::vec::set_mask<isSetMask>(instr, sizeof(T), mask, repeatTime);                                          \
    ::opkit::vec::set_strides(instr, repeatParams);                                                                 \
    ::opkit::issue(instr);                                                                                          \
  }
OPKIT_COMPARE_SCALAR(CompareScalar)
OPKIT_COMPARE_SCALAR(Compares)
#undef OPKIT_COMPARE_SCALAR
#undef OPKIT_COMPARE_SCALAR_REPEATS

#define OPKIT_COMPARE_REPEATS(mask_parameter)                                                                      \
  template <typename T, typename U, bool isSetMask = true>                                                         \
  inline void Compare(const LocalTensor<U>& dst, const LocalTensor<T>& src0, const LocalTensor<T>& src1,           \
                      CMPMODE cmpMode, mask_parameter, uint8_t repeatTime, const BinaryRepeatParams& repeatParams, \
                      OPKIT_HERE) {                                                                                \
    OPKIT_ASSERT_TYPE(Compare, T);                                                                                 \
    ::opkit::Instr instr = ::opkit::vec::binary(::opkit::Op::Compare, opkit::vec::comparison_bits(dst),            \
                                                src0.operand(), src1.operand(), where);                            \
    instr.mode = static_cast<uint8_t>(cmpMode);                                                                    \
    ::opkit::vec::set_mask<isSetMask>(instr, sizeof(T), mask, repeatTime);                                         \
    ::opkit::vec::set_strides(instr, repeatParams);                                                                \
    ::opkit::issue(instr);                                                                                         \
  }                                                                                                                \
  /* One repeat, into the compare register. */                                                                     \
  template <typename T, bool isSetMask = true>                                                                     \
  inline void Compare(const LocalTensor<T>& src0, const LocalTensor<T>& src1, CMPMODE cmpMode, mask_parameter,     \
                      const BinaryRepeatParams& repeatParams, OPKIT_HERE) {                                        \
    OPKIT_ASSERT_TYPE(CompareRegister, T);                                                                         \
    ::opkit::Instr instr =                                                                                         \
        ::opkit::vec::binary(::opkit::Op::CompareRegister, src0.operand(), src0.operand(), src1.operand(), where); \
    instr.mode = static_cast<uint8_t>(cmpMode);                                                                    \
    ::opkit::vec::set_mask<isSetMask>(instr, sizeof(T), mask, 1);                                                  \
    ::opkit::vec::set_strides(instr, repeatParams);                                                                \
    ::opkit::issue(instr);                                                                                         \
  }
OPKIT_COMPARE_REPEATS(const uint64_t* mask)
OPKIT_COMPARE_REPEATS(const uint64_t mask)
#undef OPKIT_COMPARE_REPEATS

template <typename T>
inline void GetCmpMask(const LocalTensor<T>& dst, OPKIT_HERE) {
  opkit::Instr instr = opkit::vec::start(opkit::Op::GetCmpMask, where);
  instr.dst = dst.operand();
  opkit::issue(instr);
}
template <typename T>
inline void SetCmpMask(const LocalTensor<T>& src, OPKIT_HERE) {
  opkit::Instr instr = opkit::vec::unary(opkit::Op::SetCmpMask, src.operand(), src.operand(), where);
  opkit::issue(instr);
}

}  // namespace AscendC

namespace opkit::vec {

template <typename T, typename U>
inline Instr select(const AscendC::LocalTensor<T>& dst, const AscendC::LocalTensor<U>& selection,
                    const AscendC::LocalTensor<T>& src0, AscendC::SELMODE mode, Where where) {
  OPKIT_ASSERT_TYPE(Select, T);
  Instr instr = unary(Op::Select, dst.operand(), src0.operand(), where);
  instr.src[2] = selection.operand();
  instr.source_count = 3;
  instr.mode = static_cast<uint8_t>(mode);
  return instr;
}

}  // namespace opkit::vec

namespace AscendC {

template <typename T, typename U>
inline void Select(const LocalTensor<T>& dst, const LocalTensor<U>& selMask, const LocalTensor<T>& src0, T src1,
                   SELMODE selMode, uint32_t count, OPKIT_HERE) {
  opkit::Instr instr = opkit::vec::select(dst, selMask, src0, selMode, where);
  opkit::vec::set_scalar(instr, src1);
  opkit::vec::set_count<true>(instr, count);
  opkit::issue(instr);
}
template <typename T, typename U>
inline void Select(const LocalTensor<T>& dst, const LocalTensor<U>& selMask, const LocalTensor<T>& src0,
                   const LocalTensor<T>& src1, SELMODE selMode, uint32_t count, OPKIT_HERE) {
  opkit::Instr instr = opkit::vec::select(dst, selMask, src0, selMode, where);
  instr.src[1] = src1.operand();
  opkit::vec::set_count<true>(instr, count);
  opkit::issue(instr);
}

#define OPKIT_SELECT_REPEATS(mask_parameter)                                                                       \
  template <typename T, typename U, bool isSetMask = true>                                                         \
  inline void Select(const LocalTensor<T>& dst, const LocalTensor<U>& selMask, const LocalTensor<T>& src0, T src1, \
                     SELMODE selMode, mask_parameter, uint8_t repeatTime, const BinaryRepeatParams& repeatParams,  \
                     OPKIT_HERE) {                                                                                 \
    ::opkit::Instr instr = ::opkit::vec::select(dst, selMask, src0, selMode, where);                               \
    ::opkit::vec::set_scalar(instr, src1);                                                                         \
    ::opkit::vec::set_mask<isSetMask>(instr, sizeof(T), mask, repeatTime);                                         \
    ::opkit::vec::set_strides(instr, repeatParams);                                                                \
    ::opkit::issue(instr);                                                                                         \
  }                                                                                                                \
  template <typename T, typename U, bool isSetMask = true>                                                         \
  inline void Select(const LocalTensor<T>& dst, const LocalTensor<U>& selMask, const LocalTensor<T>& src0,         \
                     const LocalTensor<T>& src1, SELMODE selMode, mask_parameter, uint8_t repeatTime,              \
                     const BinaryRepeatParams& repeatParams, OPKIT_HERE) {                                         \
    ::opkit::Instr instr = ::opkit::vec::select(dst, selMask, src0, selMode, where);                               \
    instr.src[1] = src1.operand();                                                                                 \
    ::opkit::vec::set_mask<isSetMask>(instr, sizeof(T), mask, repeatTime);                                         \
    ::opkit::vec::set_strides(instr, repeatParams);                                                                \
    ::opkit::issue(instr);                                                                                         \
  }
OPKIT_SELECT_REPEATS(const uint64_t* mask)
OPKIT_SELECT_REPEATS(uint64_t mask)
#undef OPKIT_SELECT_REPEATS

/// The mask is in the mask register. Mode 0: the selection is in the compare register; mode 2: its address is.
template <typename T, SELMODE selMode>
inline void Select(const LocalTensor<T>& dst, const LocalTensor<T>& src0, const LocalTensor<T>& src1,
                   uint8_t repeatTime, const BinaryRepeatParams& repeatParams, OPKIT_HERE) {
  OPKIT_ASSERT_TYPE(Select, T);
  opkit::Instr instr = opkit::vec::binary(opkit::Op::Select, dst.operand(), src0.operand(), src1.operand(), where);
  instr.mode = static_cast<uint8_t>(selMode);
  opkit::vec::set_mask<false>(instr, sizeof(T), uint64_t{0}, repeatTime);
  opkit::vec::set_strides(instr, repeatParams);
  opkit::issue(instr);
}

/// Mode 1 with its scalar in the compare register, the mask in the mask register.
template <typename T, typename U>
inline void Select(const LocalTensor<T>& dst, const LocalTensor<U>& selMask, const LocalTensor<T>& src0,
                   uint8_t repeatTime, const BinaryRepeatParams& repeatParams, OPKIT_HERE) {
  opkit::Instr instr = opkit::vec::select(dst, selMask, src0, SELMODE::VSEL_TENSOR_SCALAR_MODE, where);
  instr.mode |= opkit::kScalarInRegister;
  opkit::vec::set_mask<false>(instr, sizeof(T), uint64_t{0}, repeatTime);
  opkit::vec::set_strides(instr, repeatParams);
  opkit::issue(instr);
}

}  // namespace AscendC
