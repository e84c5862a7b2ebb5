/// Fixpipe as it was before FixpipeParamsV220: L0C as bursts of columns. Later documents leave it out; kernels that are
/// built with several versions keep it. Source: the fields that public kernels fill and their remarks.
#pragma once

#include "opkit/api/fixpipe.h"

namespace AscendC {

struct QuantParams {
  QuantMode_t quantPre = QuantMode_t::NoQuant;
  uint64_t deqScalar = 0;
};

/// Matrices of rows: how many, their distances as in FixpipeParamsV220, and the columns that they have.
struct Nz2NdParams {
  bool nz2ndEn = false;
  uint16_t ndNum = 1;
  uint16_t srcNdStride = 0;
  uint16_t dstNdStride = 0;
  uint16_t originalNSize = 0;
};

/// cburstNum counts columns of 16 elements, burstLen the data blocks of a column in L0C, where SrcT lies. dstStride is
/// the elements of a row with nz2ndEn, else the data blocks between the end of a column and the next.
template <typename SrcT>
struct FixpipeParams {
  uint16_t cburstNum = 1;
  uint16_t burstLen = 1;
  uint16_t srcStride = 0;
  uint32_t dstStride = 0;
  QuantParams quantParams;
  bool reluEn = false;
  Nz2NdParams nz2ndParams;
  FixpipeParams() = default;
  FixpipeParams(uint16_t count, uint16_t length, uint16_t source_stride, uint32_t destination_stride)
      : cburstNum(count), burstLen(length), srcStride(source_stride), dstStride(destination_stride) {}
};

}  // namespace AscendC

namespace opkit {

template <typename T, typename U>
inline void issue_fixpipe_bursts(const Operand& dst, const Operand& src, const Operand* parameters,
                                 const AscendC::FixpipeParams<U>& params, Where where) {
  constexpr uint32_t kRowBytes = kCubeSide * sizeof(U);
  const AscendC::Nz2NdParams& matrices = params.nz2ndParams;
  if (params.srcStride != 0) {
    illegal_operand("Fixpipe: what srcStride of FixpipeParams counts is not documented; use FixpipeParamsV220", where);
  }
  const auto rows = static_cast<uint16_t>(params.burstLen * kBlockBytes / kRowBytes);
  // Columns lie in L0C as Mmad leaves them: in whole fractals.
  const auto column = static_cast<uint16_t>((rows + kCubeSide - 1) / kCubeSide * kCubeSide);
  const uint16_t columns =
      matrices.nz2ndEn ? matrices.originalNSize : static_cast<uint16_t>(params.cburstNum * kCubeSide);
  const auto column_blocks = static_cast<uint32_t>(rows * kCubeSide * sizeof(T) / kBlockBytes);
  const uint32_t stride = matrices.nz2ndEn ? params.dstStride : column_blocks + params.dstStride;
  const AscendC::FixpipeParamsV220 same(columns, rows, column, stride, params.reluEn, params.quantParams.quantPre,
                                        params.quantParams.deqScalar, matrices.ndNum, matrices.srcNdStride,
                                        matrices.dstNdStride, 0);
  issue_fixpipe(dst, src, parameters, fixpipe_copy<T, U>(same, matrices.nz2ndEn), where);
}

}  // namespace opkit

namespace AscendC {

template <typename T, typename U, template <typename> class DESTINATION>
inline void Fixpipe(const DESTINATION<T>& dst, const LocalTensor<U>& src, const FixpipeParams<U>& intriParams,
                    opkit::Where where = opkit::Where::here()) {
  opkit::issue_fixpipe_bursts<T, U>(dst.operand(), src.operand(), nullptr, intriParams, where);
}
/// With a quantisation parameter for each column, in L1.
template <typename T, typename U, template <typename> class DESTINATION>
inline void Fixpipe(const DESTINATION<T>& dst, const LocalTensor<U>& src, const LocalTensor<uint64_t>& cbufWorkspace,
                    const FixpipeParams<U>& intriParams, opkit::Where where = opkit::Where::here()) {
  const opkit::Operand parameters = cbufWorkspace.operand();
  opkit::issue_fixpipe_bursts<T, U>(dst.operand(), src.operand(), &parameters, intriParams, where);
}

}  // namespace AscendC
