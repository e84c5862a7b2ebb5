/// Public templates of the elementwise rows, each in its three call forms: the first `count` elements; repeats with a
/// mask of bits; repeats with a mask of the first lanes. Source: Ascend C API, memory vector compute.
#pragma once

#include "opkit/api/vector_common.h"

namespace AscendC {

#define VEC_UNARY(name, ...)                                                                                 \
  template <typename T, bool isSetMask = true>                                                               \
  inline void name(const LocalTensor<T>& dst, const LocalTensor<T>& src, const int32_t& count, OPKIT_HERE) { \
    OPKIT_ASSERT_TYPE(name, T);                                                                              \
    ::opkit::Instr instr = ::opkit::vec::unary(::opkit::Op::name, dst.operand(), src.operand(), where);      \
    ::opkit::vec::set_count<isSetMask>(instr, static_cast<uint32_t>(count));                                 \
    ::opkit::issue(instr);                                                                                   \
  }                                                                                                          \
  OPKIT_UNARY_REPEATS(name, const uint64_t* mask)                                                            \
  OPKIT_UNARY_REPEATS(name, uint64_t mask)
#define OPKIT_UNARY_REPEATS(name, mask_parameter)                                                                  \
  template <typename T, bool isSetMask = true>                                                                     \
  inline void name(const LocalTensor<T>& dst, const LocalTensor<T>& src, mask_parameter, const uint8_t repeatTime, \
                   const UnaryRepeatParams& repeatParams, OPKIT_HERE) {                                            \
    OPKIT_ASSERT_TYPE(name, T);                                                                                    \
    ::opkit::Instr instr = ::opkit::vec::unary(::opkit::Op::name, dst.operand(), src.operand(), where);            \
    ::opkit::vec::set_mask<isSetMask>(instr, sizeof(T), mask, repeatTime);                                         \
    ::opkit::vec::set_strides(instr, repeatParams);                                                                \
    ::opkit::issue(instr);                                                                                         \
  }
#include "opkit/isa/vec_unary.inc"
#undef VEC_UNARY
#undef OPKIT_UNARY_REPEATS

#define VEC_BINARY(name, ...)                                                                          \
  template <typename T, bool isSetMask = true>                                                         \
  inline void name(const LocalTensor<T>& dst, const LocalTensor<T>& src0, const LocalTensor<T>& src1,  \
                   const int32_t& count, OPKIT_HERE) {                                                 \
    OPKIT_ASSERT_TYPE(name, T);                                                                        \
    ::opkit::Instr instr =                                                                             \
        ::opkit::vec::binary(::opkit::Op::name, dst.operand(), src0.operand(), src1.operand(), where); \
    ::opkit::vec::set_count<isSetMask>(instr, static_cast<uint32_t>(count));                           \
    ::opkit::issue(instr);                                                                             \
  }                                                                                                    \
  OPKIT_BINARY_REPEATS(name, const uint64_t* mask)                                                     \
  OPKIT_BINARY_REPEATS(name, uint64_t mask)
#define OPKIT_BINARY_REPEATS(name, mask_parameter)                                                                    \
  template <typename T, bool isSetMask = true>                                                                        \
  inline void name(const LocalTensor<T>& dst, const LocalTensor<T>& src0, const LocalTensor<T>& src1, mask_parameter, \
                   const uint8_t repeatTime, const BinaryRepeatParams& repeatParams, OPKIT_HERE) {                    \
    OPKIT_ASSERT_TYPE(name, T);                                                                                       \
    ::opkit::Instr instr =                                                                                            \
        ::opkit::vec::binary(::opkit::Op::name, dst.operand(), src0.operand(), src1.operand(), where);                \
    ::opkit::vec::set_mask<isSetMask>(instr, sizeof(T), mask, repeatTime);                                            \
    ::opkit::vec::set_strides(instr, repeatParams);                                                                   \
    ::opkit::issue(instr);                                                                                            \
  }
#include "opkit/isa/vec_binary.inc"
#undef VEC_BINARY
#undef OPKIT_BINARY_REPEATS

#define VEC_BINARY_SCALAR(name, ...)                                                                                 \
  template <typename T, bool isSetMask = true>                                                                       \
  inline void name(const LocalTensor<T>& dst, const LocalTensor<T>& src, const T& scalarValue, const int32_t& count, \
                   OPKIT_HERE) {                                                                                     \
    OPKIT_ASSERT_TYPE(name, T);                                                                                      \
    ::opkit::Instr instr = ::opkit::vec::unary(::opkit::Op::name, dst.operand(), src.operand(), where);              \
    ::opkit::vec::set_scalar(instr, scalarValue);                                                                    \
    ::opkit::vec::set_count<isSetMask>(instr, static_cast<uint32_t>(count));                                         \
    ::opkit::issue(instr);                                                                                           \
  }                                                                                                                  \
  OPKIT_SCALAR_REPEATS(name, const uint64_t* mask)                                                                   \
  OPKIT_SCALAR_REPEATS(name, uint64_t mask)
#define OPKIT_SCALAR_REPEATS(name, mask_parameter)                                                             \
  template <typename T, bool isSetMask = true>                                                                 \
  inline void name(const LocalTensor<T>& dst, const LocalTensor<T>& src, const T& scalarValue, mask_parameter, \
                   const uint8_t repeatTime, const UnaryRepeatParams& repeatParams, OPKIT_HERE) {              \
    OPKIT_ASSERT_TYPE(name, T);                                                                                \
    ::opkit::Instr instr = ::opkit::vec::unary(::opkit::Op::name, dst.operand(), src.operand(), where);        \
    ::opkit::vec::set_scalar(instr, scalarValue);                                                              \
    ::opkit::vec::set_mask<isSetMask>(instr, sizeof(T), mask, repeatTime);                                     \
    ::opkit::vec::set_strides(instr, repeatParams);                                                            \
    ::opkit::issue(instr);                                                                                     \
  }
#include "opkit/isa/vec_binary_scalar.inc"
#undef VEC_BINARY_SCALAR
#undef OPKIT_SCALAR_REPEATS

// The same with the scalar's type as a template argument of its own, which has to be the tensors'.
#define OPKIT_SCALAR_TYPED(name, parameters, arguments)                                                                \
  template <typename T, typename U, bool isSetMask = true, std::enable_if_t<std::is_same_v<PrimT<T>, U>, bool> = true> \
  inline void name(const LocalTensor<T>& dst, const LocalTensor<T>& src, const U& scalarValue,                         \
                   OPKIT_UNPACK parameters, OPKIT_HERE) {                                                              \
    name<T, isSetMask>(dst, src, scalarValue, OPKIT_UNPACK arguments, where);                                          \
  }
#define OPKIT_UNPACK(...) __VA_ARGS__
#define VEC_BINARY_SCALAR(name, ...)                                                                                \
  OPKIT_SCALAR_TYPED(name, (const int32_t& count), (count))                                                         \
  OPKIT_SCALAR_TYPED(name, (const uint64_t* mask, const uint8_t repeatTime, const UnaryRepeatParams& repeatParams), \
                     (mask, repeatTime, repeatParams))                                                              \
  OPKIT_SCALAR_TYPED(name, (uint64_t mask, const uint8_t repeatTime, const UnaryRepeatParams& repeatParams),        \
                     (mask, repeatTime, repeatParams))
#define VEC_BINARY_SCALAR_DST(name, ...)  // Axpy has such forms below
#include "opkit/isa/vec_binary_scalar.inc"
#undef VEC_BINARY_SCALAR
#undef VEC_BINARY_SCALAR_DST

// ShiftRight with rounding.
#define OPKIT_SHIFT_RIGHT(mask_parameter)                                                                             \
  template <typename T, bool isSetMask = true>                                                                        \
  inline void ShiftRight(const LocalTensor<T>& dst, const LocalTensor<T>& src, const T& scalarValue, mask_parameter,  \
                         const uint8_t repeatTime, const UnaryRepeatParams& repeatParams, bool roundEn, OPKIT_HERE) { \
    OPKIT_ASSERT_TYPE(ShiftRight, T);                                                                                 \
    ::opkit::Instr instr = ::opkit::vec::unary(::opkit::Op::ShiftRight, dst.operand(), src.operand(), where);         \
    ::opkit::vec::set_scalar(instr, scalarValue);                                                                     \
    instr.scalar_bits[1] = roundEn ? 1 : 0;                                                                           \
    ::opkit::vec::set_mask<isSetMask>(instr, sizeof(T), mask, repeatTime);                                            \
    ::opkit::vec::set_strides(instr, repeatParams);                                                                   \
    ::opkit::issue(instr);                                                                                            \
  }
OPKIT_SHIFT_RIGHT(const uint64_t* mask)
OPKIT_SHIFT_RIGHT(uint64_t mask)
#undef OPKIT_SHIFT_RIGHT
OPKIT_SCALAR_TYPED(ShiftRight,
                   (const uint64_t* mask, const uint8_t repeatTime, const UnaryRepeatParams& repeatParams,
                    bool roundEn),
                   (mask, repeatTime, repeatParams, roundEn))
OPKIT_SCALAR_TYPED(ShiftRight,
                   (uint64_t mask, const uint8_t repeatTime, const UnaryRepeatParams& repeatParams, bool roundEn),
                   (mask, repeatTime, repeatParams, roundEn))
#undef OPKIT_SCALAR_TYPED
#undef OPKIT_UNPACK

// MulAddDst and Axpy also take half sources with a float destination, 64 lanes a repeat.
#define OPKIT_ASSERT_WIDENING(name, T, U)                                                                     \
  static_assert(::opkit::vec::accepts<T>(::opkit::Op::name) && ::opkit::vec::accepts<U>(::opkit::Op::name) && \
                    sizeof(T) >= sizeof(U),                                                                   \
                #name ": this pair of data types is not supported on this chip; see `opkit isa " #name "`")

template <typename T, typename U>
inline void MulAddDst(const LocalTensor<T>& dst, const LocalTensor<U>& src0, const LocalTensor<U>& src1,
                      const int32_t& count, OPKIT_HERE) {
  OPKIT_ASSERT_WIDENING(MulAddDst, T, U);
  opkit::Instr instr = opkit::vec::binary(opkit::Op::MulAddDst, dst.operand(), src0.operand(), src1.operand(), where);
  opkit::vec::set_count<true>(instr, static_cast<uint32_t>(count));
  opkit::issue(instr);
}
template <typename T, typename U>
inline void Axpy(const LocalTensor<T>& dst, const LocalTensor<U>& src, const U& scalarValue, const int32_t& count,
                 OPKIT_HERE) {
  OPKIT_ASSERT_WIDENING(Axpy, T, U);
  opkit::Instr instr = opkit::vec::unary(opkit::Op::Axpy, dst.operand(), src.operand(), where);
  opkit::vec::set_scalar(instr, scalarValue);
  opkit::vec::set_count<true>(instr, static_cast<uint32_t>(count));
  opkit::issue(instr);
}

#define OPKIT_WIDENING_REPEATS(mask_parameter)                                                                 \
  template <typename T, typename U, bool isSetMask = true>                                                     \
  inline void MulAddDst(const LocalTensor<T>& dst, const LocalTensor<U>& src0, const LocalTensor<U>& src1,     \
                        mask_parameter, const uint8_t repeatTime, const BinaryRepeatParams& repeatParams,      \
                        OPKIT_HERE) {                                                                          \
    OPKIT_ASSERT_WIDENING(MulAddDst, T, U);                                                                    \
    ::opkit::Instr instr =                                                                                     \
        ::opkit::vec::binary(::opkit::Op::MulAddDst, dst.operand(), src0.operand(), src1.operand(), where);    \
    ::opkit::vec::set_mask<isSetMask>(instr, sizeof(T), mask, repeatTime);                                     \
    ::opkit::vec::set_strides(instr, repeatParams);                                                            \
    ::opkit::issue(instr);                                                                                     \
  }                                                                                                            \
  template <typename T, typename U, bool isSetMask = true>                                                     \
  inline void Axpy(const LocalTensor<T>& dst, const LocalTensor<U>& src, const U& scalarValue, mask_parameter, \
                   const uint8_t repeatTime, const UnaryRepeatParams& repeatParams, OPKIT_HERE) {              \
    OPKIT_ASSERT_WIDENING(Axpy, T, U);                                                                         \
    ::opkit::Instr instr = ::opkit::vec::unary(::opkit::Op::Axpy, dst.operand(), src.operand(), where);        \
    ::opkit::vec::set_scalar(instr, scalarValue);                                                              \
    ::opkit::vec::set_mask<isSetMask>(instr, sizeof(T), mask, repeatTime);                                     \
    ::opkit::vec::set_strides(instr, repeatParams);                                                            \
    ::opkit::issue(instr);                                                                                     \
  }
OPKIT_WIDENING_REPEATS(const uint64_t* mask)
OPKIT_WIDENING_REPEATS(uint64_t mask)
#undef OPKIT_WIDENING_REPEATS
#undef OPKIT_ASSERT_WIDENING

}  // namespace AscendC
