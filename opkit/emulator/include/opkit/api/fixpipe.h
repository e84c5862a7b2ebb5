/// Fixpipe: from L0C to GM and L1. Source: Ascend C API, matrix computation (ISASI), moving matrices out.
#pragma once

#include "opkit/api/tensor.h"

/// Without a namespace, as kernels name it. The V forms take a parameter for each column.
enum QuantMode_t {
  NoQuant,
  F322F16,
  F322BF16,
  DEQF16,
  VDEQF16,
  QF322B8_PRE,
  VQF322B8_PRE,
  REQ8,
  VREQ8,
};

namespace AscendC {

enum class CO2Layout : uint8_t { NZ = 0, ROW_MAJOR, COLUMN_MAJOR };

struct FixpipeConfig {
  CO2Layout format;
  bool isToUB = false;
};
constexpr FixpipeConfig CFG_NZ = {CO2Layout::NZ, false};
constexpr FixpipeConfig CFG_ROW_MAJOR = {CO2Layout::ROW_MAJOR, false};

/// srcStride counts 16 elements of L0C, dstStride elements of a row (ND) or data blocks (NZ), srcNdStride fractals of
/// 16 x 16 elements of L0C, dstNdStride elements.
struct FixpipeParamsV220 {
  uint16_t nSize = 0;
  uint16_t mSize = 0;
  uint16_t srcStride = 0;
  uint32_t dstStride = 0;
  QuantMode_t quantPre = QuantMode_t::NoQuant;
  uint64_t deqScalar = 0;
  uint16_t ndNum = 1;
  uint16_t srcNdStride = 0;
  uint16_t dstNdStride = 0;
  bool reluEn = false;
  uint8_t unitFlag = 0;
  bool isChannelSplit = false;
  FixpipeParamsV220() = default;
  FixpipeParamsV220(uint16_t columns, uint16_t rows, uint16_t source_stride, uint32_t destination_stride, bool has_relu)
      : nSize(columns), mSize(rows), srcStride(source_stride), dstStride(destination_stride), reluEn(has_relu) {}
  FixpipeParamsV220(uint16_t columns, uint16_t rows, uint16_t source_stride, uint32_t destination_stride, bool has_relu,
                    QuantMode_t quantisation, uint64_t scale_bits, uint16_t matrices, uint16_t source_matrix_stride,
                    uint16_t destination_matrix_stride, uint8_t unit_flag)
      : nSize(columns),
        mSize(rows),
        srcStride(source_stride),
        dstStride(destination_stride),
        quantPre(quantisation),
        deqScalar(scale_bits),
        ndNum(matrices),
        srcNdStride(source_matrix_stride),
        dstNdStride(destination_matrix_stride),
        reluEn(has_relu),
        unitFlag(unit_flag) {}
};

}  // namespace AscendC

namespace opkit {

/// Without a tensor of parameters the modes that have one take that of SetFixPipeConfig.
inline void issue_fixpipe(const Operand& dst, const Operand& src, const Operand* parameters, const FixpipeCopy& copy,
                          Where where) {
  const Operand& configured = matrix_registers().quantisation;
  if (parameters == nullptr && is_vector(copy.quantisation) && configured.end != 0) parameters = &configured;
  Instr instr;
  instr.op = Op::Fixpipe;
  instr.pipe = Pipe::FIX;
  instr.dst = dst;
  instr.src[0] = accumulator(src);
  instr.source_count = 1;
  if (parameters != nullptr) {
    instr.src[1] = *parameters;
    instr.source_count = 2;
  }
  instr.fixpipe = &copy;
  instr.where = where;
  issue(instr);
}

template <typename T, typename U>
inline FixpipeCopy fixpipe_copy(const AscendC::FixpipeParamsV220& params, bool is_nd) {
  constexpr uint64_t kSourceRow = kCubeSide * sizeof(U);
  FixpipeCopy copy;
  copy.m = params.mSize;
  copy.n = params.nSize;
  copy.is_nd = is_nd;
  copy.is_channel_split = params.isChannelSplit;
  copy.has_relu = params.reluEn;
  copy.unit_flag = params.unitFlag;
  copy.quantisation = static_cast<Quantisation>(params.quantPre);
  copy.parameter_bits = params.deqScalar;
  copy.src_stride = params.srcStride * kSourceRow;
  copy.dst_stride = uint64_t{params.dstStride} * (is_nd ? sizeof(T) : kBlockBytes);
  if (is_nd) {
    copy.matrices = params.ndNum;
    copy.src_matrix_stride = params.srcNdStride * kSourceRow * kCubeSide;
    copy.dst_matrix_stride = params.dstNdStride * sizeof(T);
  }
  return copy;
}

}  // namespace opkit

namespace AscendC {

template <typename T, typename U, const FixpipeConfig& config = CFG_ROW_MAJOR>
inline void Fixpipe(const GlobalTensor<T>& dst, const LocalTensor<U>& src, const FixpipeParamsV220& intriParams,
                    opkit::Where where = opkit::Where::here()) {
  static_assert(config.format != CO2Layout::COLUMN_MAJOR, "Fixpipe: COLUMN_MAJOR needs Ascend 950");
  opkit::issue_fixpipe(dst.operand(), src.operand(), nullptr,
                       opkit::fixpipe_copy<T, U>(intriParams, config.format == CO2Layout::ROW_MAJOR), where);
}
/// With a quantisation parameter for each column, in L1.
template <typename T, typename U, const FixpipeConfig& config = CFG_ROW_MAJOR>
inline void Fixpipe(const GlobalTensor<T>& dst, const LocalTensor<U>& src, const LocalTensor<uint64_t>& cbufWorkspace,
                    const FixpipeParamsV220& intriParams, opkit::Where where = opkit::Where::here()) {
  static_assert(config.format != CO2Layout::COLUMN_MAJOR, "Fixpipe: COLUMN_MAJOR needs Ascend 950");
  const opkit::Operand parameters = cbufWorkspace.operand();
  opkit::issue_fixpipe(dst.operand(), src.operand(), &parameters,
                       opkit::fixpipe_copy<T, U>(intriParams, config.format == CO2Layout::ROW_MAJOR), where);
}

/// To L1: always columns (NZ) with dstStride in data blocks.
template <typename T, typename U, const FixpipeConfig& config = CFG_ROW_MAJOR>
inline void Fixpipe(const LocalTensor<T>& dst, const LocalTensor<U>& src, const FixpipeParamsV220& intriParams,
                    opkit::Where where = opkit::Where::here()) {
  opkit::issue_fixpipe(dst.operand(), src.operand(), nullptr, opkit::fixpipe_copy<T, U>(intriParams, false), where);
}
template <typename T, typename U, const FixpipeConfig& config = CFG_ROW_MAJOR>
inline void Fixpipe(const LocalTensor<T>& dst, const LocalTensor<U>& src, const LocalTensor<uint64_t>& cbufWorkspace,
                    const FixpipeParamsV220& intriParams, opkit::Where where = opkit::Where::here()) {
  const opkit::Operand parameters = cbufWorkspace.operand();
  opkit::issue_fixpipe(dst.operand(), src.operand(), &parameters, opkit::fixpipe_copy<T, U>(intriParams, false), where);
}

// The older way: registers, and DataCopy from L0C with DataCopyCO12DstParams.

/// srcStride counts 16 elements of L0C; dstStride elements of a row (nz2ndEn) or data blocks.
struct DataCopyCO12DstParams {
  uint8_t sid = 0;  ///< reserved
  uint16_t nSize = 0;
  uint16_t mSize = 0;
  uint32_t dstStride = 0;
  uint16_t srcStride = 0;
  uint8_t unitFlag = 0;
  uint8_t clipReluPre = 0;  ///< of other chips
  uint8_t eltWiseOp = 0;    ///< of other chips
  QuantMode_t quantPre = QuantMode_t::NoQuant;
  uint8_t reluPre = 0;
  bool channelSplit = false;
  bool nz2ndEn = false;
  DataCopyCO12DstParams() = default;
  DataCopyCO12DstParams(uint16_t columns, uint16_t rows, uint32_t destination_stride, uint16_t source_stride,
                        QuantMode_t quantisation, uint8_t relu, bool is_channel_split, bool is_nd)
      : nSize(columns),
        mSize(rows),
        dstStride(destination_stride),
        srcStride(source_stride),
        quantPre(quantisation),
        reluPre(relu),
        channelSplit(is_channel_split),
        nz2ndEn(is_nd) {}
};

/// For nz2ndEn: matrices, and their distances in fractals of L0C and in elements.
inline void SetFixpipeNz2ndFlag(uint16_t ndNum, uint16_t srcNdStride, uint16_t dstNdStride) {
  opkit::MatrixRegisters& registers = opkit::matrix_registers();
  registers.nd_count = ndNum;
  registers.nd_src_stride = srcNdStride;
  registers.nd_dst_stride = dstNdStride;
}
/// The parameter of scalar quantisation.
inline void SetFixpipePreQuantFlag(uint64_t config) { opkit::matrix_registers().quantisation_bits = config; }
/// The parameters of the V forms, in the fixpipe buffer. With a tensor of L0C it only clears unit flags.
template <typename T, bool setRelu = false>
inline void SetFixPipeConfig(const LocalTensor<T>& preData, bool isUnitFlag = false) {
  static_assert(!setRelu, "SetFixPipeConfig: setRelu is not supported by the chips");
  const opkit::Operand tensor = preData.operand();
  if (tensor.space == opkit::Space::FB) opkit::matrix_registers().quantisation = tensor;
  if (isUnitFlag) opkit::clear_unit_flags();
}
template <typename T>
inline void SetFixPipeConfig(const LocalTensor<T>&, const LocalTensor<T>& quantPre, bool isUnitFlag = false) {
  SetFixPipeConfig<T>(quantPre, isUnitFlag);
}

}  // namespace AscendC

namespace opkit {

template <typename T, typename U>
inline void issue_fixpipe_by_registers(const Operand& dst, const Operand& src,
                                       const AscendC::DataCopyCO12DstParams& params, bool is_nd, Where where) {
  static_assert(sizeof(U) == 4, "DataCopy with DataCopyCO12DstParams: L0C holds float and int32_t");
  if (params.clipReluPre != 0 || params.eltWiseOp != 0) {
    illegal_operand("DataCopy: this chip has neither clipReluPre nor eltWiseOp", where);
  }
  const MatrixRegisters& registers = matrix_registers();
  AscendC::FixpipeParamsV220 same(params.nSize, params.mSize, params.srcStride, params.dstStride, params.reluPre != 0,
                                  params.quantPre, registers.quantisation_bits, registers.nd_count,
                                  registers.nd_src_stride, registers.nd_dst_stride, params.unitFlag);
  same.isChannelSplit = params.channelSplit;
  issue_fixpipe(dst, src, nullptr, fixpipe_copy<T, U>(same, is_nd), where);
}

}  // namespace opkit

namespace AscendC {

template <typename T, typename U>
inline void DataCopy(const GlobalTensor<T>& dst, const LocalTensor<U>& src, const DataCopyCO12DstParams& intriParams,
                     opkit::Where where = opkit::Where::here()) {
  opkit::issue_fixpipe_by_registers<T, U>(dst.operand(), src.operand(), intriParams, intriParams.nz2ndEn, where);
}
template <typename T, typename U>
inline void DataCopy(const LocalTensor<T>& dst, const LocalTensor<U>& src, const DataCopyCO12DstParams& intriParams,
                     opkit::Where where = opkit::Where::here()) {
  opkit::issue_fixpipe_by_registers<T, U>(dst.operand(), src.operand(), intriParams, false, where);
}

}  // namespace AscendC
