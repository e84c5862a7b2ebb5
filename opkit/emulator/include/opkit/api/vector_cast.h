/// Cast. Source: Ascend C API, type conversion.
#pragma once

#include "opkit/api/vector_common.h"

namespace AscendC {

#define OPKIT_ASSERT_CAST(T, U)                                                      \
  static_assert(::opkit::vec::casts(::opkit::dtype_of<T>(), ::opkit::dtype_of<U>()), \
                "Cast: this pair of data types is not supported on this chip; see `opkit isa Cast`")

template <typename T, typename U>
inline void Cast(const LocalTensor<T>& dst, const LocalTensor<U>& src, const RoundMode& roundMode, const uint32_t count,
                 OPKIT_HERE) {
  OPKIT_ASSERT_CAST(T, U);
  opkit::Instr instr = opkit::vec::unary(opkit::Op::Cast, dst.operand(), src.operand(), where);
  instr.mode = static_cast<uint8_t>(roundMode);
  opkit::vec::set_count<true>(instr, count);
  opkit::issue(instr);
}

#define OPKIT_CAST_REPEATS(mask_parameter)                                                                           \
  template <typename T, typename U, bool isSetMask = true>                                                           \
  inline void Cast(const LocalTensor<T>& dst, const LocalTensor<U>& src, const RoundMode& roundMode, mask_parameter, \
                   const uint8_t repeatTime, const UnaryRepeatParams& repeatParams, OPKIT_HERE) {                    \
    OPKIT_ASSERT_CAST(T, U);                                                                                         \
    ::opkit::Instr instr = ::opkit::vec::unary(::opkit::Op::Cast, dst.operand(), src.operand(), where);              \
    instr.mode = static_cast<uint8_t>(roundMode);                                                                    \
    ::opkit::vec::set_mask<isSetMask>(instr, ::opkit::vec::widest<T, U>(), mask, repeatTime);                        \
    ::opkit::vec::set_strides(instr, repeatParams);                                                                  \
    ::opkit::issue(instr);                                                                                           \
  }
OPKIT_CAST_REPEATS(const uint64_t* mask)
OPKIT_CAST_REPEATS(uint64_t mask)
#undef OPKIT_CAST_REPEATS
#undef OPKIT_ASSERT_CAST

}  // namespace AscendC
