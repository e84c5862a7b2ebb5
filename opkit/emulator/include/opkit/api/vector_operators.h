/// `dst = src0 + src1` and the other operators on whole tensors. They make an instruction without a destination, which
/// the assignment completes and issues. Source: Ascend C API, pages of the two-operand instructions and Compare.
#pragma once

#include "opkit/api/vector_common.h"

namespace AscendC {

#define OPKIT_OPERATOR(symbol, name)                                                                           \
  template <typename T>                                                                                        \
  inline detail::TensorExpression<T> operator symbol(const LocalTensor<T>& src0, const LocalTensor<T>& src1) { \
    OPKIT_ASSERT_TYPE(name, T);                                                                                \
    return {::opkit::vec::binary(::opkit::Op::name, {}, src0.operand(), src1.operand(), {"", 0})};             \
  }
OPKIT_OPERATOR(+, Add)
OPKIT_OPERATOR(-, Sub)
OPKIT_OPERATOR(*, Mul)
OPKIT_OPERATOR(/, Div)
OPKIT_OPERATOR(&, And)
OPKIT_OPERATOR(|, Or)
#undef OPKIT_OPERATOR

// The destination holds bits, so the sources give the number of elements.
#define OPKIT_COMPARISON(symbol, mode_name)                                                                          \
  template <typename T>                                                                                              \
  inline detail::TensorExpression<uint8_t> operator symbol(const LocalTensor<T>& src0, const LocalTensor<T>& src1) { \
    OPKIT_ASSERT_TYPE(Compare, T);                                                                                   \
    ::opkit::Instr instr = ::opkit::vec::binary(::opkit::Op::Compare, {}, src0.operand(), src1.operand(), {"", 0});  \
    instr.mode = static_cast<uint8_t>(CMPMODE::mode_name);                                                           \
    instr.count = src0.GetSize();                                                                                    \
    return {instr};                                                                                                  \
  }
OPKIT_COMPARISON(<, LT)
OPKIT_COMPARISON(>, GT)
OPKIT_COMPARISON(==, EQ)
OPKIT_COMPARISON(<=, LE)
OPKIT_COMPARISON(>=, GE)
OPKIT_COMPARISON(!=, NE)
#undef OPKIT_COMPARISON

}  // namespace AscendC
