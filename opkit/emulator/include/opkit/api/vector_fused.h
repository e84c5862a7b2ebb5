/// Compound instructions that convert: AddReluCast, SubReluCast, MulCast, AddDeqRelu, CastDequant; and SetDeqScale.
/// Source: Ascend C API, compound compute; auxiliary interfaces of type conversion.
#pragma once

#include "opkit/api/vector_common.h"

namespace AscendC {

/// Sixteen parameters of CastDequant, one for each element of a data block.
struct VdeqInfo {
  VdeqInfo() = default;
  VdeqInfo(const float scales[16], const int16_t offsets[16], const bool signs[16]) {
    for (uint32_t i = 0; i < 16; ++i) {
      vdeqScale[i] = scales[i];
      vdeqOffset[i] = offsets[i];
      vdeqSignMode[i] = signs[i];
    }
  }

  float vdeqScale[16] = {};
  int16_t vdeqOffset[16] = {};
  bool vdeqSignMode[16] = {};
};

}  // namespace AscendC

namespace opkit::vec {

/// A parameter as the DEQSCALE register holds it. Source: SetDeqScale, table 1
inline uint64_t packed_scale(float scale, int16_t offset, bool is_signed) {
  return bits_of(scale) | (static_cast<uint64_t>(offset) & 0x1ff) << 37 | uint64_t{is_signed ? 1u : 0u} << 46;
}

constexpr bool converts(DType dst, DType src, DType from, DType to) { return src == from && dst == to; }

/// AddReluCast and SubReluCast.
constexpr bool relu_casts(DType dst, DType src) {
  return converts(dst, src, DType::F16, DType::S8) || converts(dst, src, DType::S16, DType::S8) ||
         converts(dst, src, DType::F32, DType::F16);
}
constexpr bool mul_casts(DType dst, DType src) {
  return converts(dst, src, DType::F16, DType::S8) || converts(dst, src, DType::F16, DType::U8);
}
constexpr bool deq_relus(DType dst, DType src) { return converts(dst, src, DType::S32, DType::F16); }
constexpr bool dequantizes(DType dst, DType src) {
  return converts(dst, src, DType::S16, DType::S8) || converts(dst, src, DType::S16, DType::U8) ||
         (kArchTraits.dequantizes_s32 && converts(dst, src, DType::S32, DType::F16));
}

}  // namespace opkit::vec

namespace AscendC {

/// The scale of int32_t to half, in Cast, AddDeqRelu and CastDequant.
inline void SetDeqScale(half scale) { opkit::set_deq_scale(opkit::bits_of(scale), opkit::DeqScale::Half); }

/// The scale, offset and sign of int16_t to bytes, in CastDequant.
inline void SetDeqScale(float scale, int16_t offset, bool signMode) {
  opkit::set_deq_scale(opkit::vec::packed_scale(scale, offset, signMode), opkit::DeqScale::Float);
}

/// The same for each element of a data block: fills `vdeq`, 128 bytes, that CastDequant reads.
template <typename T>
inline void SetDeqScale(const LocalTensor<T>& vdeq, const VdeqInfo& vdeqInfo, OPKIT_HERE) {
  static_assert(sizeof(T) == 8, "SetDeqScale: the tensor's elements are uint64_t");
  for (uint32_t i = 0; i < 16; ++i) {
    vdeq.SetValue(i, opkit::vec::packed_scale(vdeqInfo.vdeqScale[i], vdeqInfo.vdeqOffset[i], vdeqInfo.vdeqSignMode[i]),
                  where);
  }
  opkit::set_deq_scale(vdeq.address() / opkit::kBlockBytes, opkit::DeqScale::Vector);
}

#define OPKIT_ASSERT_FUSED(name, T, U, pairs)                                        \
  static_assert(::opkit::vec::pairs(::opkit::dtype_of<T>(), ::opkit::dtype_of<U>()), \
                #name ": this pair of data types is not supported on this chip; see `opkit isa " #name "`")

#define OPKIT_FUSED_REPEATS(name, pairs, mask_parameter)                                                              \
  template <typename T, typename U, bool isSetMask = true>                                                            \
  inline void name(const LocalTensor<T>& dst, const LocalTensor<U>& src0, const LocalTensor<U>& src1, mask_parameter, \
                   const uint8_t repeatTime, const BinaryRepeatParams& repeatParams, OPKIT_HERE) {                    \
    OPKIT_ASSERT_FUSED(name, T, U, pairs);                                                                            \
    ::opkit::Instr instr =                                                                                            \
        ::opkit::vec::binary(::opkit::Op::name, dst.operand(), src0.operand(), src1.operand(), where);                \
    ::opkit::vec::set_mask<isSetMask>(instr, ::opkit::vec::widest<T, U>(), mask, repeatTime);                         \
    ::opkit::vec::set_strides(instr, repeatParams);                                                                   \
    ::opkit::issue(instr);                                                                                            \
  }
#define OPKIT_FUSED(name, pairs)                                                                       \
  template <typename T, typename U>                                                                    \
  inline void name(const LocalTensor<T>& dst, const LocalTensor<U>& src0, const LocalTensor<U>& src1,  \
                   const uint32_t count, OPKIT_HERE) {                                                 \
    OPKIT_ASSERT_FUSED(name, T, U, pairs);                                                             \
    ::opkit::Instr instr =                                                                             \
        ::opkit::vec::binary(::opkit::Op::name, dst.operand(), src0.operand(), src1.operand(), where); \
    ::opkit::vec::set_count<true>(instr, count);                                                       \
    ::opkit::issue(instr);                                                                             \
  }                                                                                                    \
  OPKIT_FUSED_REPEATS(name, pairs, const uint64_t* mask)                                               \
  OPKIT_FUSED_REPEATS(name, pairs, uint64_t mask)
OPKIT_FUSED(AddReluCast, relu_casts)
OPKIT_FUSED(SubReluCast, relu_casts)
OPKIT_FUSED(MulCast, mul_casts)
OPKIT_FUSED(AddDeqRelu, deq_relus)
#undef OPKIT_FUSED
#undef OPKIT_FUSED_REPEATS

// AddDeqRelu with the one pair of types that it has, so that isSetMask is its only template argument.
#define OPKIT_ADD_DEQ_RELU(mask_parameter)                                                           \
  template <bool isSetMask>                                                                          \
  inline void AddDeqRelu(const LocalTensor<half>& dst, const LocalTensor<int32_t>& src0,             \
                         const LocalTensor<int32_t>& src1, mask_parameter, const uint8_t repeatTime, \
                         const BinaryRepeatParams& repeatParams, OPKIT_HERE) {                       \
    AddDeqRelu<half, int32_t, isSetMask>(dst, src0, src1, mask, repeatTime, repeatParams, where);    \
  }
OPKIT_ADD_DEQ_RELU(const uint64_t* mask)
OPKIT_ADD_DEQ_RELU(uint64_t mask)
#undef OPKIT_ADD_DEQ_RELU

}  // namespace AscendC

namespace opkit::vec {

template <bool isVecDeq, bool halfBlock, typename T, typename U>
inline Instr cast_dequant(const AscendC::LocalTensor<T>& dst, const AscendC::LocalTensor<U>& src, Where where) {
  OPKIT_ASSERT_FUSED(CastDequant, T, U, dequantizes);
  Instr instr = unary(Op::CastDequant, dst.operand(), src.operand(), where);
  if (sizeof(T) != 1) return instr;
  instr.mode = static_cast<uint8_t>((isVecDeq ? 1 : 0) | (halfBlock ? 2 : 0));
  // The results of a data block lie in one half of a data block: laid out as the sources are.
  instr.scalar_dtype = instr.dst.dtype;
  instr.dst.dtype = DType::S16;
  return instr;
}

}  // namespace opkit::vec

namespace AscendC {

/// `halfBlock`: bytes go to the second half of each data block of dst, else to the first.
template <typename T, typename U, bool isVecDeq = true, bool halfBlock = true>
inline void CastDequant(const LocalTensor<T>& dst, const LocalTensor<U>& src, const uint32_t count, OPKIT_HERE) {
  opkit::Instr instr = opkit::vec::cast_dequant<isVecDeq, halfBlock>(dst, src, where);
  opkit::vec::set_count<true>(instr, count);
  opkit::issue(instr);
}

#define OPKIT_CAST_DEQUANT(mask_parameter, mask_value)                                                              \
  template <typename T, typename U, bool isSetMask = true, bool isVecDeq = true, bool halfBlock = true>             \
  inline void CastDequant(const LocalTensor<T>& dst, const LocalTensor<U>& src, mask_parameter, uint8_t repeatTime, \
                          const UnaryRepeatParams& repeatParams, OPKIT_HERE) {                                      \
    ::opkit::Instr instr = ::opkit::vec::cast_dequant<isVecDeq, halfBlock>(dst, src, where);                        \
    ::opkit::vec::set_mask<isSetMask>(instr, sizeof(U), mask_value, repeatTime);                                    \
    ::opkit::vec::set_strides(instr, repeatParams);                                                                 \
    ::opkit::issue(instr);                                                                                          \
  }
OPKIT_CAST_DEQUANT(const uint64_t* mask, mask)
OPKIT_CAST_DEQUANT(const int32_t mask, static_cast<uint64_t>(mask < 0 ? 0 : mask))
#undef OPKIT_CAST_DEQUANT
#undef OPKIT_ASSERT_FUSED

}  // namespace AscendC
