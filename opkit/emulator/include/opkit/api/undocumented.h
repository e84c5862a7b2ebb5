/// Names from behind the documented API that public kernels use all the same. What they mean follows from that use and
/// from the documented function each stands for; names of which it does not follow are in isa/missing.inc.
#pragma once

#include "opkit/api/builtin.h"
#include "opkit/api/data_copy.h"
#include "opkit/api/fixpipe.h"
#include "opkit/api/matrix_image.h"
#include "opkit/api/matrix_load.h"
#include "opkit/api/mmad.h"
#include "opkit/api/pointer_operand.h"
#include "opkit/api/vector_reduce.h"
#include "opkit/api/vector_transpose.h"

/// Source: ops-nn masked_softmax_with_rel_pos_bias.
#define PRELOAD(length) AscendC::ICachePreLoad(length)

namespace AscendC {

// Sources: the text of the sample cross_core_set_wait_flag and kernels of ops-nn (conv3d_backprop_input_v2) use them.
// SyncAll takes flags 11 to 14 for itself on the hardware (SyncAll, constraints). Which of them these two are is not
// documented; here SyncAll takes none, so any of that range serves.
constexpr uint16_t SYNC_AIC_FLAG = 11;
constexpr uint16_t SYNC_AIC_AIV_FLAG = 13;

/// Elements that Brcb spreads in a repeat. Sources: name, ops-nn add_layer_norm; number, the page of Brcb.
constexpr uint32_t BRCB_BROADCAST_NUMBER = 8;
/// What half of a buffer is its size divided by. Source: ops-nn conv3d_backprop_input_v2, TOTAL_UB_SIZE / HALF_FACTOR.
constexpr uint32_t HALF_FACTOR = 2;
/// The bits of float32's negative infinity, which kernels take the address of. Source: ops-transformer
/// moe_gating_top_k.
constexpr uint32_t F32_NEG_INF = 0xff800000;

/// Values of unitFlag. Source: ops-nn flat_quant gives the second to the last Mmad of a sum and its Fixpipe, the first
/// to those before, as the page of MmadParams has 3 and 2.
constexpr uint8_t UFMode2 = 2;
constexpr uint8_t UFMode3 = 3;

/// Numbers by their names. Source: ops-nn top_k_top_p_sample, which rounds elements up to 32 bytes of float by the one
/// and divides by the other for the repeats of Concat, which takes 16 elements in each.
constexpr uint32_t EIGHT = 8;
constexpr uint32_t SIXTEEN = 16;

/// The hardware counts flags between cores in memory; here they need none. Source: ops-nn matmul_v2_compress_dequant.
inline void SetSyncBaseAddr(uint64_t) {}

/// Global memory that the vendor's check of addresses shall let pass: constants of the kernel, which opkit knows.
/// Source: ops-math lin_space.
template <typename T>
inline void OOMCheckAddrRange(T*, uint64_t) {}

/// The bits of a number, as registers take them. Source: ops-math arg_max_with_value.
template <typename T>
inline uint64_t GetScalarBitcodeValue(T scalarValue) {
  return opkit::bits_of(scalarValue);
}

/// DataCopy, from UB to global memory, of addresses. Source: ops-math diag_flat.
template <typename T>
inline void DataCopyUB2GMImpl(T* dst, T* src, const DataCopyParams& intriParams,
                              opkit::Where where = opkit::Where::here()) {
  opkit::issue_copy(opkit::Op::DataCopy, opkit::gm_operand(dst), opkit::ub_operand(src),
                    opkit::block_copy(intriParams, opkit::Space::GM), where);
}

/// DataCopyPad, from global memory to UB, of addresses. Source: ops-nn matmul/common.
template <typename T>
inline void DataCopyPadGm2UBImpl(T* dst, T* src, const DataCopyExtParams& intriParams,
                                 const DataCopyPadExtParams<T>& padParams, opkit::Where where = opkit::Where::here()) {
  opkit::issue_copy(opkit::Op::DataCopyPad, opkit::ub_operand(dst), opkit::gm_operand(src),
                    opkit::padded_copy(intriParams, padParams), where);
}

/// DataCopyPad, from UB to global memory, of addresses. Source: ops-transformer moe_token_permute.
template <typename T>
inline void DataCopyPadUB2GMImpl(T* dst, T* src, const DataCopyExtParams& intriParams,
                                 opkit::Where where = opkit::Where::here()) {
  opkit::issue_copy(opkit::Op::DataCopyPad, opkit::gm_operand(dst), opkit::ub_operand(src),
                    opkit::unpadded_copy(intriParams), where);
}

/// TransDataTo5HD of addresses. Source: ops-nn ge_glu_grad_v2.
template <typename T>
inline void TransDataTo5HDImpl(T* dstList[NCHW_CONV_ADDR_LIST_SIZE], T* srcList[NCHW_CONV_ADDR_LIST_SIZE],
                               const TransDataTo5HDParams& nchwconvParams, opkit::Where where = opkit::Where::here()) {
  opkit::Operand list[2 * opkit::vec::kAddressList];
  for (uint32_t i = 0; i < opkit::vec::kAddressList; ++i) {
    list[i] = opkit::ub_operand(dstList[i]);
    list[opkit::vec::kAddressList + i] = opkit::ub_operand(srcList[i]);
  }
  opkit::vec::trans_data<T>(list, nchwconvParams, where);
}

/// Source, of the next two: ops-nn conv3d_backprop_input_v2.
template <typename T, typename U, typename S>
inline void MmadImpl(const LocalTensor<T>& dst, const LocalTensor<U>& fm, const LocalTensor<S>& filter,
                     const MmadParams& mmadParams, opkit::Where where = opkit::Where::here()) {
  Mmad(dst, fm, filter, mmadParams, where);
}

/// `PARAMS`: LoadData2DParams, LoadData3DParamsV2 or LoadData3DParamsV2Pro.
template <typename T, typename PARAMS>
inline void LoadDataImpl(const LocalTensor<T>& dst, const LocalTensor<T>& src, const PARAMS& loadDataParams,
                         opkit::Where where = opkit::Where::here()) {
  LoadData(dst, src, loadDataParams, where);
}

/// Source: ops-nn conv3d_v2.
inline void Load3DSetFMatrixCal(uint16_t l1H, uint16_t l1W, const uint8_t padList[4],
                                opkit::Where where = opkit::Where::here()) {
  SetFmatrix(l1H, l1W, padList, FmatrixMode::FMATRIX_LEFT, where);
}

/// BlockReduceMax and BlockReduceSum of addresses, by the mask that is set. Source: ops-transformer
/// moe_gating_top_k_softmax.
template <typename T>
inline void BlockReduceMaxIntrinsicsImpl(T* dst, T* src, int32_t repeat, int32_t dstRepStride, int32_t srcBlkStride,
                                         int32_t srcRepStride, opkit::Where where = opkit::Where::here()) {
  BlockReduceMax<T, false>(opkit::ub_tensor(dst), opkit::ub_tensor(src), repeat, 0, dstRepStride, srcBlkStride,
                           srcRepStride, where);
}
template <typename T>
inline void BlockReduceSumIntrinsicsImpl(T* dst, T* src, int32_t repeat, int32_t dstRepStride, int32_t srcBlkStride,
                                         int32_t srcRepStride, opkit::Where where = opkit::Where::here()) {
  BlockReduceSum<T, false>(opkit::ub_tensor(dst), opkit::ub_tensor(src), repeat, 0, dstRepStride, srcBlkStride,
                           srcRepStride, where);
}

/// SetFixpipeNz2ndFlag as the register holds it: 16 bits each, the count lowest. Sources: ops-transformer
/// flash_attention_score_grad, pypto.
inline void SetNdParaImpl(uint64_t ndPara) {
  SetFixpipeNz2ndFlag(static_cast<uint16_t>(ndPara), static_cast<uint16_t>(ndPara >> 16),
                      static_cast<uint16_t>(ndPara >> 32));
}

/// Bits of a byte, by its name. Source: ops-transformer flash_attention_score.
constexpr uint32_t ONE_BYTE_BIT_SIZE = 8;

}  // namespace AscendC

/// Copies tiling data into an array of the core's own. Source: ops-transformer incre_flash_attention, whose comment
/// says what for.
inline void copy_data_align64(uint8_t* dst, const uint8_t* src, size_t size) { __builtin_memcpy(dst, src, size); }

/// SetNdParaImpl, the compiler's function.
inline void set_nd_para(uint64_t ndPara) { AscendC::SetNdParaImpl(ndPara); }
