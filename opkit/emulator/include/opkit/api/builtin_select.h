/// Built-in functions on addresses that compare, find extremes and gather. Source: CCE Intrinsic API of CANN 8.5,
/// vcmax, vreducev2, vcmpvs, vgather, vcmp, vcmpv; what the pages leave out: the C API's asc_repeat_reduce_max,
/// asc_reduce, asc_gt and asc_gather, which are the same instructions.
#pragma once

#include "opkit/api/builtin.h"

namespace opkit {

/// What lies at an address in UB of which the lower half is left: all that vgather takes of the source's.
template <typename T>
inline Operand ub_operand_of_low_half(uint32_t address) {
  const uint64_t base = reinterpret_cast<uint64_t>(local_memory(Space::UB));
  const uint32_t offset = address - static_cast<uint32_t>(base);
  return ub_operand<T>(offset < local_memory_bytes(Space::UB) ? uint64_t{offset} : uint64_t{address});
}

template <typename T>
inline void gather_by_address(T* dst, uint32_t* offsets, uint32_t base, uint16_t repeat_stride, uint8_t repeat,
                              Where where) {
  const Operand to = vec::strided(ub_operand(dst), 1, repeat_stride);
  Instr instr = vec::binary(Op::Gather, to, ub_operand_of_low_half<T>(base), ub_operand(offsets), where);
  vec::set_mask<false>(instr, sizeof(T), uint64_t{0}, repeat);
  issue(instr);
}

/// The mask register counts in counter mode: elements of a repeat, as GatherMask's mask does.
template <typename T>
inline void reduce_by_pattern(T* dst, T* src0, T* src1, uint16_t repeat, uint8_t block_stride, uint8_t pattern,
                              uint16_t repeat_stride, uint8_t pattern_repeat_stride, Where where) {
  if (pattern > 7) illegal_operand("vreducev2: patternMode is one of 0 to 7", where);
  const Operand from = vec::strided(ub_operand(src0), block_stride, repeat_stride);
  Instr instr = vec::unary(Op::GatherMask, ub_operand(dst), from, where);
  if (pattern == 0) {
    instr.src[1] = vec::strided(ub_operand(src1), 1, pattern_repeat_stride);
    instr.source_count = 2;
  }
  instr.mode = static_cast<uint8_t>(pattern << 1);
  vec::set_mask<false>(instr, sizeof(T), uint64_t{0}, repeat);
  issue(instr);
}

}  // namespace opkit

enum class Order_t : uint8_t { VALUE_INDEX, INDEX_VALUE, ONLY_VALUE, ONLY_INDEX };

// The destination's stride counts results of one repeat.
#define OPKIT_BUILTIN_EXTREME(name, function)                                                                      \
  template <typename T>                                                                                            \
  inline void name(T* dst, T* src, uint8_t repeat, uint16_t dstRepeatStride, uint16_t srcBlockStride,              \
                   uint16_t srcRepeatStride, Order_t order, opkit::Where where = opkit::Where::here()) {           \
    AscendC::function<T, false>(opkit::ub_tensor(dst), opkit::ub_tensor(src), int32_t{0}, repeat, dstRepeatStride, \
                                srcBlockStride, srcRepeatStride, static_cast<AscendC::ReduceOrder>(order), where); \
  }
OPKIT_BUILTIN_EXTREME(vcmax, WholeReduceMax)
OPKIT_BUILTIN_EXTREME(vcmin, WholeReduceMin)
#undef OPKIT_BUILTIN_EXTREME

// Offsets and the address that is added to each are bytes, as asc_gather's are: the table of vgather's page counts the
// latter in elements, its text adds the two.
#define OPKIT_BUILTIN_GATHER(T)                                                                                  \
  inline void vgather(T* dst, uint32_t* src, uint32_t offsetAddr, uint16_t dstRepeatStride, uint8_t repeat,      \
                      opkit::Where where = opkit::Where::here()) {                                               \
    opkit::gather_by_address(dst, src, offsetAddr, dstRepeatStride, repeat, where);                              \
  }                                                                                                              \
  inline void vreducev2(T* dst, T* src0, T* src1, uint16_t repeat, uint8_t src0BlockStride, uint8_t patternMode, \
                        uint16_t src0RepeatStride, uint8_t src1RepeatStride,                                     \
                        opkit::Where where = opkit::Where::here()) {                                             \
    opkit::reduce_by_pattern(dst, src0, src1, repeat, src0BlockStride, patternMode, src0RepeatStride,            \
                             src1RepeatStride, where);                                                           \
  }
OPKIT_BUILTIN_GATHER(uint16_t)
OPKIT_BUILTIN_GATHER(uint32_t)
#undef OPKIT_BUILTIN_GATHER

/// Elements that the last vreducev2 picked. Source: C API, asc_get_rsvd_count.
inline int64_t get_rsvd_cnt() { return static_cast<int64_t>(opkit::gather_mask_count()); }

// Into memory whole repeats, whatever the mask is; into the register the one repeat's lanes of the mask.
#define OPKIT_BUILTIN_COMPARE(suffix, mode)                                                                         \
  template <typename T>                                                                                             \
  inline void vcmpv_##suffix(uint8_t* dst, T* src0, T* src1, uint8_t repeat, uint8_t dstBlockStride,                \
                             uint8_t src0BlockStride, uint8_t src1BlockStride, uint8_t dstRepeatStride,             \
                             uint8_t src0RepeatStride, uint8_t src1RepeatStride,                                    \
                             opkit::Where where = opkit::Where::here()) {                                           \
    AscendC::Compare<T, uint8_t, false>(                                                                            \
        opkit::ub_tensor(dst), opkit::ub_tensor(src0), opkit::ub_tensor(src1), AscendC::CMPMODE::mode, uint64_t{0}, \
        repeat,                                                                                                     \
        AscendC::BinaryRepeatParams(dstBlockStride, src0BlockStride, src1BlockStride, dstRepeatStride,              \
                                    src0RepeatStride, src1RepeatStride),                                            \
        where);                                                                                                     \
  }                                                                                                                 \
  template <typename T>                                                                                             \
  inline void vcmpvs_##suffix(uint8_t* dst, T* src0, T src1, uint8_t repeat, uint16_t dstBlockStride,               \
                              uint16_t srcBlockStride, uint16_t dstRepeatStride, uint16_t srcRepeatStride,          \
                              opkit::Where where = opkit::Where::here()) {                                          \
    AscendC::Compares<T, uint8_t, false>(                                                                           \
        opkit::ub_tensor(dst), opkit::ub_tensor(src0), src1, AscendC::CMPMODE::mode, uint64_t{0}, repeat,           \
        opkit::unary_strides(dstBlockStride, srcBlockStride, dstRepeatStride, srcRepeatStride, where), where);      \
  }                                                                                                                 \
  template <typename T>                                                                                             \
  inline void vcmp_##suffix(T* src0, T* src1, uint8_t, uint8_t dstBlockStride, uint8_t src0BlockStride,             \
                            uint8_t src1BlockStride, uint8_t dstRepeatStride, uint8_t src0RepeatStride,             \
                            uint8_t src1RepeatStride, opkit::Where where = opkit::Where::here()) {                  \
    AscendC::Compare<T, false>(opkit::ub_tensor(src0), opkit::ub_tensor(src1), AscendC::CMPMODE::mode, uint64_t{0}, \
                               AscendC::BinaryRepeatParams(dstBlockStride, src0BlockStride, src1BlockStride,        \
                                                           dstRepeatStride, src0RepeatStride, src1RepeatStride),    \
                               where);                                                                              \
  }
OPKIT_BUILTIN_COMPARE(eq, EQ)
OPKIT_BUILTIN_COMPARE(ne, NE)
OPKIT_BUILTIN_COMPARE(lt, LT)
OPKIT_BUILTIN_COMPARE(gt, GT)
OPKIT_BUILTIN_COMPARE(le, LE)
OPKIT_BUILTIN_COMPARE(ge, GE)
#undef OPKIT_BUILTIN_COMPARE
