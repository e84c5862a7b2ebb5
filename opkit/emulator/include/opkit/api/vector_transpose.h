/// TransDataTo5HD and Transpose. Source: Ascend C API, data layout conversion.
#pragma once

#include "opkit/api/pointer_operand.h"
#include "opkit/api/vector_common.h"

namespace AscendC {

constexpr int32_t NCHW_CONV_ADDR_LIST_SIZE = 16;

struct TransDataTo5HDParams {
  constexpr TransDataTo5HDParams() = default;
  constexpr TransDataTo5HDParams(bool dst_high, bool src_high, uint8_t repeat, uint16_t dst_repeat, uint16_t src_repeat)
      : dstHighHalf(dst_high),
        srcHighHalf(src_high),
        repeatTimes(repeat),
        dstRepStride(dst_repeat),
        srcRepStride(src_repeat) {}

  bool dstHighHalf = false;
  bool srcHighHalf = false;
  uint8_t repeatTimes = 1;
  uint16_t dstRepStride = 0;
  uint16_t srcRepStride = 0;
};

enum class TransposeType : uint8_t {
  TRANSPOSE_TYPE_NONE,
  TRANSPOSE_NZ2ND_0213,
  TRANSPOSE_NZ2NZ_0213,
  TRANSPOSE_NZ2NZ_012_WITH_N,
  TRANSPOSE_NZ2ND_012_WITH_N,
  TRANSPOSE_NZ2ND_012_WITHOUT_N,
  TRANSPOSE_NZ2NZ_012_WITHOUT_N,
  TRANSPOSE_ND2ND_ONLY,
  TRANSPOSE_ND_UB_GM,
  TRANSPOSE_GRAD_ND_UB_GM,
  TRANSPOSE_ND2ND_B16,
  TRANSPOSE_NCHW2NHWC,
  TRANSPOSE_NHWC2NCHW
};

struct TransposeParamsExt {
  constexpr TransposeParamsExt() = default;
  constexpr TransposeParamsExt(uint16_t n, uint16_t c, uint16_t h, uint16_t w, TransposeType type)
      : nSize(n), cSize(c), hSize(h), wSize(w), transposeType(type) {}

  uint16_t nSize = 0;
  uint16_t cSize = 0;
  uint16_t hSize = 0;
  uint16_t wSize = 0;
  TransposeType transposeType = TransposeType::TRANSPOSE_ND2ND_B16;
};

}  // namespace AscendC

namespace opkit::vec {

constexpr uint32_t kAddressList = AscendC::NCHW_CONV_ADDR_LIST_SIZE;

/// `list`: 16 destinations, then 16 sources.
template <typename T>
inline void trans_data(const Operand (&list)[2 * kAddressList], const AscendC::TransDataTo5HDParams& params,
                       Where where) {
  OPKIT_ASSERT_TYPE(TransDataTo5HD, T);
  Instr instr = unary(Op::TransDataTo5HD, strided(list[0], 1, params.dstRepStride),
                      strided(list[kAddressList], 1, params.srcRepStride), where);
  instr.list = list;
  instr.list_count = 2 * kAddressList;
  instr.mode = static_cast<uint8_t>((params.dstHighHalf ? 1 : 0) | (params.srcHighHalf ? 2 : 0));
  set_lanes(instr, kRepeatBytes / sizeof(T), params.repeatTimes);
  issue(instr);
}

inline uint64_t packed_sizes(const AscendC::TransposeParamsExt& params) {
  return static_cast<uint64_t>(params.nSize) << 48 | static_cast<uint64_t>(params.cSize) << 32 |
         static_cast<uint64_t>(params.hSize) << 16 | params.wSize;
}

}  // namespace opkit::vec

namespace AscendC {

/// Lists of addresses, as GetPhyAddr gives them.
template <typename T>
inline void TransDataTo5HD(uint64_t dstList[NCHW_CONV_ADDR_LIST_SIZE], uint64_t srcList[NCHW_CONV_ADDR_LIST_SIZE],
                           const TransDataTo5HDParams& nchwconvParams, OPKIT_HERE) {
  opkit::Operand list[2 * opkit::vec::kAddressList];
  for (uint32_t i = 0; i < opkit::vec::kAddressList; ++i) {
    list[i] = opkit::ub_operand<T>(dstList[i]);
    list[opkit::vec::kAddressList + i] = opkit::ub_operand<T>(srcList[i]);
  }
  opkit::vec::trans_data<T>(list, nchwconvParams, where);
}

/// Lists of addresses that lie in tensors.
template <typename T>
inline void TransDataTo5HD(const LocalTensor<uint64_t>& dst, const LocalTensor<uint64_t>& src,
                           const TransDataTo5HDParams& nchwconvParams, OPKIT_HERE) {
  uint64_t dst_list[NCHW_CONV_ADDR_LIST_SIZE];
  uint64_t src_list[NCHW_CONV_ADDR_LIST_SIZE];
  for (uint32_t i = 0; i < opkit::vec::kAddressList; ++i) {
    dst_list[i] = dst.GetValue(i, where);
    src_list[i] = src.GetValue(i, where);
  }
  TransDataTo5HD<T>(dst_list, src_list, nchwconvParams, where);
}

/// Lists of tensors.
template <typename T>
inline void TransDataTo5HD(const LocalTensor<T> (&dstList)[NCHW_CONV_ADDR_LIST_SIZE],
                           const LocalTensor<T> (&srcList)[NCHW_CONV_ADDR_LIST_SIZE],
                           const TransDataTo5HDParams& nchwconvParams, OPKIT_HERE) {
  opkit::Operand list[2 * opkit::vec::kAddressList];
  for (uint32_t i = 0; i < opkit::vec::kAddressList; ++i) {
    list[i] = dstList[i].operand();
    list[opkit::vec::kAddressList + i] = srcList[i].operand();
  }
  opkit::vec::trans_data<T>(list, nchwconvParams, where);
}

/// A 16 x 16 matrix of 16-bit elements; `dst` may be `src`.
template <typename T>
inline void Transpose(const LocalTensor<T>& dst, const LocalTensor<T>& src, OPKIT_HERE) {
  static_assert(sizeof(T) == 2 && opkit::vec::accepts<T>(opkit::Op::Transpose),
                "Transpose: a 16 x 16 matrix has elements of int16_t, uint16_t or half; see `opkit isa Transpose`");
  opkit::Instr instr = opkit::vec::unary(opkit::Op::Transpose, dst.operand(), src.operand(), where);
  instr.mode = static_cast<uint8_t>(TransposeType::TRANSPOSE_ND2ND_B16);
  instr.scalar_bits[0] = opkit::vec::packed_sizes({0, 0, 16, 16, TransposeType::TRANSPOSE_ND2ND_B16});
  opkit::vec::set_lanes(instr, opkit::kRepeatBytes / sizeof(T), 1);
  opkit::issue(instr);
}

/// A 16 x 16 matrix, or NCHW to NHWC and back.
template <typename T>
inline void Transpose(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LocalTensor<uint8_t>& sharedTmpBuffer,
                      const TransposeParamsExt& transposeParams, OPKIT_HERE) {
  OPKIT_ASSERT_TYPE(Transpose, T);
  opkit::Instr instr =
      opkit::vec::binary(opkit::Op::Transpose, dst.operand(), src.operand(), sharedTmpBuffer.operand(), where);
  instr.mode = static_cast<uint8_t>(transposeParams.transposeType);
  instr.scalar_bits[0] = opkit::vec::packed_sizes(transposeParams);
  const uint64_t elements =
      uint64_t{transposeParams.nSize} * transposeParams.cSize * transposeParams.hSize * transposeParams.wSize;
  const uint64_t repeats = (elements * sizeof(T) + 511) / 512;  // for the timing model: 512 bytes at a time
  opkit::vec::set_lanes(instr, elements, static_cast<uint32_t>(repeats == 0 ? 1 : repeats));
  opkit::issue(instr);
}

}  // namespace AscendC
