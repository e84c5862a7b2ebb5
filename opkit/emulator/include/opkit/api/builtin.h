/// The compiler's built-in functions that public kernels call beside the API: copies, arithmetic, flags and masks on
/// addresses. Their lanes are those of the mask register. Source: CCE Intrinsic API of CANN 8.5, general copies, copies
/// with padding, vector compute. Those that compare, reduce, gather and convert: builtin_select.h, builtin_convert.h.
#pragma once

#include "opkit/api/pointer_operand.h"
#include "opkit/api/std.h"
#include "opkit/api/sync.h"
#include "opkit/api/system.h"
#include "opkit/api/vector.h"

namespace opkit {

/// The tensor at an address in UB, up to the end of UB.
template <typename T>
inline AscendC::LocalTensor<T> ub_tensor(const T* address) {
  const Operand operand = ub_operand(address);
  const auto count = static_cast<uint32_t>(elements_in<T>(operand.end - operand.address));
  return AscendC::LocalTensor<T>(AscendC::TPosition::VECCALC, static_cast<uint32_t>(operand.address), count);
}

inline void issue_builtin_flag(Op op, pipe_t source, pipe_t destination, int32_t event, Where where) {
  Instr instr;
  instr.op = op;
  instr.pipe = static_cast<Pipe>(source);
  instr.peer_pipe = static_cast<Pipe>(destination);
  instr.event_id = static_cast<uint8_t>(event);
  instr.where = where;
  issue(instr);
}

/// Distances between repeats of vector instructions have eight bits, whatever the parameter's type.
inline uint8_t repeat_stride(uint16_t blocks, Where where) {
  if (blocks > UINT8_MAX) illegal_operand("a repeat stride of a built-in vector function is over 255", where);
  return static_cast<uint8_t>(blocks);
}

inline AscendC::UnaryRepeatParams unary_strides(uint16_t dst_block, uint16_t src_block, uint16_t dst_repeat,
                                                uint16_t src_repeat, Where where) {
  return {dst_block, src_block, repeat_stride(dst_repeat, where), repeat_stride(src_repeat, where)};
}

inline Operand ub_bytes(const void* address) { return ub_operand(static_cast<const uint8_t*>(address)); }
inline Operand gm_bytes(const void* address) { return gm_operand(static_cast<const uint8_t*>(address)); }

}  // namespace opkit

inline void set_flag(pipe_t source, pipe_t destination, int32_t event, opkit::Where where = opkit::Where::here()) {
  opkit::issue_builtin_flag(opkit::Op::SetFlag, source, destination, event, where);
}
inline void wait_flag(pipe_t source, pipe_t destination, int32_t event, opkit::Where where = opkit::Where::here()) {
  opkit::issue_builtin_flag(opkit::Op::WaitFlag, source, destination, event, where);
}
inline void pipe_barrier(pipe_t pipe, opkit::Where where = opkit::Where::here()) {
  opkit::issue_builtin_flag(opkit::Op::PipeBarrier, pipe, PIPE_V, 0, where);
}

inline void set_vector_mask(uint64_t high, uint64_t low) { opkit::set_vector_mask(high, low); }
inline void set_mask_count() { AscendC::SetMaskCount(); }
inline void set_mask_norm() { AscendC::SetMaskNorm(); }
inline void set_mov_pad_val(uint64_t bits) { opkit::set_pad_value(bits); }

// Lengths and gaps in data blocks; the second argument of integers is reserved.
#define OPKIT_BUILTIN_COPY(name, destination, source)                                                                 \
  inline void name(void* dst, const void* src, uint8_t, uint16_t nBurst, uint16_t lenBurst, uint16_t srcGap,          \
                   uint16_t dstGap, opkit::Where where = opkit::Where::here()) {                                      \
    const opkit::Operand to = opkit::destination(dst);                                                                \
    opkit::issue_copy(opkit::Op::DataCopy, to, opkit::source(src),                                                    \
                      opkit::block_copy(AscendC::DataCopyParams(nBurst, lenBurst, srcGap, dstGap), to.space), where); \
  }
OPKIT_BUILTIN_COPY(copy_gm_to_ubuf, ub_bytes, gm_bytes)
OPKIT_BUILTIN_COPY(copy_ubuf_to_gm, gm_bytes, ub_bytes)
OPKIT_BUILTIN_COPY(copy_ubuf_to_ubuf, ub_bytes, ub_bytes)
#undef OPKIT_BUILTIN_COPY

// Lengths in bytes, padding in elements, gaps in bytes of global memory and data blocks of UB. What pads is the value
// of set_mov_pad_val.
#define OPKIT_BUILTIN_ALIGNED_COPY(suffix, T)                                                                         \
  inline void copy_gm_to_ubuf_align_##suffix(void* dst, const void* src, uint8_t, uint16_t nBurst, uint32_t lenBurst, \
                                             uint8_t leftPaddingNum, uint8_t rightPaddingNum, uint32_t srcGap,        \
                                             uint32_t dstGap, opkit::Where where = opkit::Where::here()) {            \
    AscendC::DataCopyPadExtParams<T> padding;                                                                         \
    padding.leftPadding = leftPaddingNum;                                                                             \
    padding.rightPadding = rightPaddingNum;                                                                           \
    opkit::issue_copy(opkit::Op::DataCopyPad, opkit::ub_operand(static_cast<T*>(dst)),                                \
                      opkit::gm_operand(static_cast<const T*>(src)),                                                  \
                      opkit::padded_copy(AscendC::DataCopyExtParams(nBurst, lenBurst, srcGap, dstGap, 0), padding),   \
                      where);                                                                                         \
  }                                                                                                                   \
  inline void copy_ubuf_to_gm_align_##suffix(void* dst, const void* src, uint8_t, uint16_t nBurst, uint32_t lenBurst, \
                                             uint8_t, uint8_t, uint32_t srcGap, uint32_t dstGap,                      \
                                             opkit::Where where = opkit::Where::here()) {                             \
    opkit::issue_copy(opkit::Op::DataCopyPad, opkit::gm_operand(static_cast<T*>(dst)),                                \
                      opkit::ub_operand(static_cast<const T*>(src)),                                                  \
                      opkit::unpadded_copy(AscendC::DataCopyExtParams(nBurst, lenBurst, srcGap, dstGap, 0)), where);  \
  }
OPKIT_BUILTIN_ALIGNED_COPY(b8, uint8_t)
OPKIT_BUILTIN_ALIGNED_COPY(b16, uint16_t)
OPKIT_BUILTIN_ALIGNED_COPY(b32, uint32_t)
#undef OPKIT_BUILTIN_ALIGNED_COPY

#define OPKIT_BUILTIN_BINARY(name, function)                                                                      \
  template <typename T>                                                                                           \
  inline void name(T* dst, T* src0, T* src1, uint8_t repeat, uint8_t dstBlockStride, uint8_t src0BlockStride,     \
                   uint8_t src1BlockStride, uint8_t dstRepeatStride, uint8_t src0RepeatStride,                    \
                   uint8_t src1RepeatStride, opkit::Where where = opkit::Where::here()) {                         \
    AscendC::function<T, false>(opkit::ub_tensor(dst), opkit::ub_tensor(src0), opkit::ub_tensor(src1),            \
                                AscendC::MASK_PLACEHOLDER, repeat,                                                \
                                AscendC::BinaryRepeatParams(dstBlockStride, src0BlockStride, src1BlockStride,     \
                                                            dstRepeatStride, src0RepeatStride, src1RepeatStride), \
                                where);                                                                           \
  }
OPKIT_BUILTIN_BINARY(vadd, Add)
OPKIT_BUILTIN_BINARY(vsub, Sub)
OPKIT_BUILTIN_BINARY(vmul, Mul)
OPKIT_BUILTIN_BINARY(vdiv, Div)
OPKIT_BUILTIN_BINARY(vmax, Max)
OPKIT_BUILTIN_BINARY(vmin, Min)
#undef OPKIT_BUILTIN_BINARY

#define OPKIT_BUILTIN_SCALAR(name, function)                                                                        \
  template <typename T>                                                                                             \
  inline void name(T* dst, T* src, T scalar, uint8_t repeat, uint16_t dstBlockStride, uint16_t srcBlockStride,      \
                   uint16_t dstRepeatStride, uint16_t srcRepeatStride, opkit::Where where = opkit::Where::here()) { \
    AscendC::function<T, false>(                                                                                    \
        opkit::ub_tensor(dst), opkit::ub_tensor(src), scalar, AscendC::MASK_PLACEHOLDER, repeat,                    \
        opkit::unary_strides(dstBlockStride, srcBlockStride, dstRepeatStride, srcRepeatStride, where), where);      \
  }
OPKIT_BUILTIN_SCALAR(vadds, Adds)
OPKIT_BUILTIN_SCALAR(vmuls, Muls)
OPKIT_BUILTIN_SCALAR(vmaxs, Maxs)
OPKIT_BUILTIN_SCALAR(vmins, Mins)
#undef OPKIT_BUILTIN_SCALAR

template <typename T>
inline void vector_dup(T* dst, T src, uint8_t repeat, uint16_t dstBlockStride, uint16_t, uint16_t dstRepeatStride,
                       uint16_t, opkit::Where where = opkit::Where::here()) {
  AscendC::Duplicate<T, false>(opkit::ub_tensor(dst), src, AscendC::MASK_PLACEHOLDER, repeat, dstBlockStride,
                               opkit::repeat_stride(dstRepeatStride, where), where);
}

template <typename T>
inline void set_cmpmask(T* src, opkit::Where where = opkit::Where::here()) {
  AscendC::SetCmpMask(opkit::ub_tensor(src), where);
}
/// selectMode as SELMODE: the bits lie in the compare register, at src1, or where the compare register says.
template <typename T, typename U>
inline void vsel(T* dst, T* src0, U* src1, uint8_t repeat, uint8_t dstBlockStride, uint8_t src0BlockStride,
                 uint8_t src1BlockStride, uint8_t dstRepeatStride, uint8_t src0RepeatStride, uint8_t src1RepeatStride,
                 uint8_t selectMode = 0, opkit::Where where = opkit::Where::here()) {
  using AscendC::SELMODE;
  const auto to = opkit::ub_tensor(dst);
  const auto from = opkit::ub_tensor(src0);
  const AscendC::BinaryRepeatParams strides(dstBlockStride, src0BlockStride, src1BlockStride, dstRepeatStride,
                                            src0RepeatStride, src1RepeatStride);
  if (selectMode == static_cast<uint8_t>(SELMODE::VSEL_TENSOR_SCALAR_MODE)) {
    AscendC::Select(to, opkit::ub_tensor(reinterpret_cast<uint8_t*>(src1)), from, repeat, strides, where);
    return;
  }
  const auto other = opkit::ub_tensor(reinterpret_cast<T*>(src1));
  if (selectMode == static_cast<uint8_t>(SELMODE::VSEL_CMPMASK_SPR)) {
    AscendC::Select<T, SELMODE::VSEL_CMPMASK_SPR>(to, from, other, repeat, strides, where);
  } else if (selectMode == static_cast<uint8_t>(SELMODE::VSEL_TENSOR_TENSOR_MODE)) {
    AscendC::Select<T, SELMODE::VSEL_TENSOR_TENSOR_MODE>(to, from, other, repeat, strides, where);
  } else {
    opkit::illegal_operand("vsel: selectMode is 0, 1 or 2", where);
  }
}

namespace opkit::builtin {

// Kernels call min and max of scalars without a namespace. A directive and not a declaration: a kernel may have
// functions or templates of these names, which are chosen then, as are those of std: they are less general.
template <typename... Number>
constexpr auto max(const Number&... numbers) -> decltype(AscendC::Std::max(numbers...)) {
  return AscendC::Std::max(numbers...);
}
template <typename... Number>
constexpr auto min(const Number&... numbers) -> decltype(AscendC::Std::min(numbers...)) {
  return AscendC::Std::min(numbers...);
}

}  // namespace opkit::builtin

using namespace opkit::builtin;  // NOLINT
