/// How the public vector templates fill an Instr: types, masks, strides.
#pragma once

#include "opkit/api/enums_vector.h"
#include "opkit/api/tensor.h"
#include "opkit/isa/arch_rows.h"

namespace opkit::vec {

/// The element types that the table gives an instruction on the chip that the kernel is compiled for.
constexpr uint32_t accepted_types(Op op) {
  using namespace type_bits;
  switch (op) {
#define OPKIT_ROW(name, types, ...) \
  case Op::name: return types_on(kArch, op, types);
#include "opkit/isa/rows.inc"
#undef OPKIT_ROW
    default: return 0;
  }
}

template <typename T>
constexpr bool accepts(Op op) {
  return (accepted_types(op) & type_bits::bit_of(dtype_of<T>())) != 0;
}

#define OPKIT_ASSERT_TYPE(name, T)                           \
  static_assert(::opkit::vec::accepts<T>(::opkit::Op::name), \
                #name ": this data type is not supported on this chip; see `opkit isa " #name "`")

/// The RoundMode values that the table of Cast gives a pair on this chip, as bits; none: it lacks the pair.
constexpr uint32_t cast_roundings(DType dst, DType src) {
  using namespace round_bits;
#define CAST(from, to, modes) \
  if (src == DType::from && dst == DType::to) return roundings_on(kArch, src, dst, modes);
#include "opkit/isa/vec_cast.inc"
#undef CAST
  return 0;
}
constexpr bool casts(DType dst, DType src) { return cast_roundings(dst, src) != 0; }
constexpr bool casts(DType dst, DType src, AscendC::RoundMode mode) {
  return (cast_roundings(dst, src) >> static_cast<uint32_t>(mode) & 1) != 0;
}

inline Operand strided(Operand operand, uint32_t block_stride, uint32_t repeat_stride) {
  operand.block_stride = block_stride;
  operand.repeat_stride = repeat_stride;
  return operand;
}

/// The first `count` elements, or those of the mask register.
template <bool isSetMask>
inline void set_count(Instr& instr, uint32_t count) {
  instr.mask_form = isSetMask ? MaskForm::Count : MaskForm::Register;
  instr.count = count;
  instr.sets_mask = isSetMask;
}

/// A mask of bits; `element_bytes` of the widest operand. Types of 32 bits and more have one word only.
template <bool isSetMask>
inline void set_mask(Instr& instr, uint32_t element_bytes, const uint64_t* mask, uint32_t repeat) {
  instr.mask_form = isSetMask ? MaskForm::Bits : MaskForm::Register;
  instr.repeat = repeat;
  instr.sets_mask = isSetMask;
  if (!isSetMask) return;
  instr.mask[0] = mask[0];
  instr.mask[1] = element_bytes > 2 ? 0 : mask[1];
}

/// A mask as the number of leading lanes.
template <bool isSetMask>
inline void set_mask(Instr& instr, uint32_t, uint64_t mask, uint32_t repeat) {
  instr.mask_form = isSetMask ? MaskForm::Prefix : MaskForm::Register;
  instr.repeat = repeat;
  instr.mask[0] = mask;
  instr.sets_mask = isSetMask;
}

/// The lanes of an instruction that takes no mask.
inline void set_lanes(Instr& instr, uint64_t lanes, uint32_t repeat) {
  instr.mask_form = MaskForm::Prefix;
  instr.repeat = repeat;
  instr.mask[0] = lanes;
}

inline Instr start(Op op, Where where) {
  Instr instr;
  instr.op = op;
  instr.where = where;
  return instr;
}

inline Instr unary(Op op, const Operand& dst, const Operand& src, Where where) {
  Instr instr = start(op, where);
  instr.dst = dst;
  instr.src[0] = src;
  instr.source_count = 1;
  return instr;
}

inline Instr binary(Op op, const Operand& dst, const Operand& src0, const Operand& src1, Where where) {
  Instr instr = unary(op, dst, src0, where);
  instr.src[1] = src1;
  instr.source_count = 2;
  return instr;
}

inline void set_strides(Instr& instr, const AscendC::UnaryRepeatParams& params) {
  instr.dst = strided(instr.dst, params.dstBlkStride, params.dstRepStride);
  instr.src[0] = strided(instr.src[0], params.srcBlkStride, params.srcRepStride);
}

inline void set_strides(Instr& instr, const AscendC::BinaryRepeatParams& params) {
  instr.dst = strided(instr.dst, params.dstBlkStride, params.dstRepStride);
  instr.src[0] = strided(instr.src[0], params.src0BlkStride, params.src0RepStride);
  instr.src[1] = strided(instr.src[1], params.src1BlkStride, params.src1RepStride);
}

template <typename T>
inline void set_scalar(Instr& instr, const T& value) {
  instr.scalar_dtype = dtype_of<T>();
  instr.scalar_bits[0] = bits_of(value);
}

template <typename T, typename U>
constexpr uint32_t widest() {
  return sizeof(T) > sizeof(U) ? sizeof(T) : sizeof(U);
}

}  // namespace opkit::vec

#define OPKIT_HERE ::opkit::Where where = ::opkit::Where::here()
