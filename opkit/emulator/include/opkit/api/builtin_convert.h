/// Built-in functions on addresses that convert: vconv_<source>2<destination><rounding>, where Cast has the pair and
/// the rounding. Source: CCE Intrinsic API of CANN 8.5, vconv.
#pragma once

#include "opkit/api/builtin.h"

// A template, so that a kernel for a chip without the pair compiles as long as it does not call it.
#define OPKIT_BUILTIN_CONVERT(name, D, S, mode)                                                                        \
  template <typename Destination>                                                                                      \
  inline void name(Destination* dst, S* src, uint8_t repeat, uint16_t dstBlockStride, uint16_t srcBlockStride,         \
                   uint16_t dstRepeatStride, uint16_t srcRepeatStride, opkit::Where where = opkit::Where::here()) {    \
    static_assert(std::is_same_v<Destination, D>, #name ": the destination is of another type; see `opkit isa Cast`"); \
    static_assert(opkit::vec::casts(opkit::dtype_of<Destination>(), opkit::dtype_of<S>(), AscendC::RoundMode::mode),   \
                  #name ": this chip does not convert so; see `opkit isa Cast`");                                      \
    AscendC::Cast<D, S, false>(                                                                                        \
        opkit::ub_tensor(dst), opkit::ub_tensor(src), AscendC::RoundMode::mode, uint64_t{0}, repeat,                   \
        opkit::unary_strides(dstBlockStride, srcBlockStride, dstRepeatStride, srcRepeatStride, where), where);         \
  }
// Without a letter: what RoundMode::CAST_NONE says. The page says that it is the r.
#define OPKIT_BUILTIN_ROUNDED(name, D, S)          \
  OPKIT_BUILTIN_CONVERT(name##r, D, S, CAST_RINT)  \
  OPKIT_BUILTIN_CONVERT(name##a, D, S, CAST_ROUND) \
  OPKIT_BUILTIN_CONVERT(name##f, D, S, CAST_FLOOR) \
  OPKIT_BUILTIN_CONVERT(name##c, D, S, CAST_CEIL)  \
  OPKIT_BUILTIN_CONVERT(name##z, D, S, CAST_TRUNC)
#define OPKIT_BUILTIN_PLAIN(name, D, S) OPKIT_BUILTIN_CONVERT(name, D, S, CAST_NONE)
#define OPKIT_BUILTIN_EITHER(name, D, S) OPKIT_BUILTIN_PLAIN(name, D, S) OPKIT_BUILTIN_ROUNDED(name, D, S)

OPKIT_BUILTIN_ROUNDED(vconv_f322f32, float, float)
OPKIT_BUILTIN_EITHER(vconv_f322f16, half, float)
OPKIT_BUILTIN_CONVERT(vconv_f322f16o, half, float, CAST_ODD)
OPKIT_BUILTIN_ROUNDED(vconv_f322bf16, bfloat16_t, float)
OPKIT_BUILTIN_ROUNDED(vconv_f322s64, int64_t, float)
OPKIT_BUILTIN_ROUNDED(vconv_f322s32, int32_t, float)
OPKIT_BUILTIN_ROUNDED(vconv_f322s16, int16_t, float)
OPKIT_BUILTIN_PLAIN(vconv_f162f32, float, half)
OPKIT_BUILTIN_ROUNDED(vconv_f162s32, int32_t, half)
OPKIT_BUILTIN_ROUNDED(vconv_f162s16, int16_t, half)
OPKIT_BUILTIN_EITHER(vconv_f162s8, int8_t, half)
OPKIT_BUILTIN_EITHER(vconv_f162u8, uint8_t, half)
OPKIT_BUILTIN_PLAIN(vconv_bf162f32, float, bfloat16_t)
OPKIT_BUILTIN_ROUNDED(vconv_bf162s32, int32_t, bfloat16_t)
OPKIT_BUILTIN_EITHER(vconv_s162f16, half, int16_t)
OPKIT_BUILTIN_PLAIN(vconv_s162f32, float, int16_t)
OPKIT_BUILTIN_EITHER(vconv_s322f32, float, int32_t)
OPKIT_BUILTIN_PLAIN(vconv_s322s16, int16_t, int32_t)
OPKIT_BUILTIN_PLAIN(vconv_s322s64, int64_t, int32_t)
OPKIT_BUILTIN_ROUNDED(vconv_s642f32, float, int64_t)
OPKIT_BUILTIN_PLAIN(vconv_s642s32, int32_t, int64_t)
OPKIT_BUILTIN_PLAIN(vconv_s82f16, half, int8_t)
OPKIT_BUILTIN_PLAIN(vconv_u82f16, half, uint8_t)
#undef OPKIT_BUILTIN_CONVERT
#undef OPKIT_BUILTIN_ROUNDED
#undef OPKIT_BUILTIN_PLAIN
#undef OPKIT_BUILTIN_EITHER
