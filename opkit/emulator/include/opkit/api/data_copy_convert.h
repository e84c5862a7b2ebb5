/// DataCopy of slices and between the ND and NZ layouts, and filling global memory. Source: Ascend C API, memory vector
/// compute, data movement.
#pragma once

#include "opkit/api/data_copy.h"

namespace AscendC {

/// One dimension of a slice, innermost first; both indices belong to the slice. Only the first has a burstLen, in data
/// blocks; stride counts the elements (or rows) left out between two pieces.
struct SliceInfo {
  uint32_t startIndex = 0;
  uint32_t endIndex = 0;
  uint32_t stride = 0;
  uint32_t burstLen = 0;
  uint32_t shapeValue = 0;
  SliceInfo() = default;
  SliceInfo(uint32_t start, uint32_t end, uint32_t gap, uint32_t burst_length, uint32_t extent = 0)
      : startIndex(start), endIndex(end), stride(gap), burstLen(burst_length), shapeValue(extent) {}
};

/// dstNzC0Stride and dstNzNStride count data blocks, everything else elements.
struct Nd2NzParams {
  uint16_t ndNum = 0;
  uint16_t nValue = 0;
  uint16_t dValue = 0;
  uint32_t srcNdMatrixStride = 0;
  uint32_t srcDValue = 0;
  uint16_t dstNzC0Stride = 0;
  uint16_t dstNzNStride = 0;
  uint32_t dstNzMatrixStride = 0;
  Nd2NzParams() = default;
  Nd2NzParams(uint16_t matrices, uint16_t rows, uint16_t columns, uint32_t source_matrix_stride,
              uint32_t source_row_stride, uint16_t column_stride, uint16_t row_stride, uint32_t matrix_stride)
      : ndNum(matrices),
        nValue(rows),
        dValue(columns),
        srcNdMatrixStride(source_matrix_stride),
        srcDValue(source_row_stride),
        dstNzC0Stride(column_stride),
        dstNzNStride(row_stride),
        dstNzMatrixStride(matrix_stride) {}
};

/// srcNdMatrixStride counts 256 elements, srcNStride 16 elements, the others elements.
struct Nz2NdParamsFull {
  uint16_t ndNum = 1;
  uint16_t nValue = 0;
  uint16_t dValue = 0;
  uint16_t srcNdMatrixStride = 1;
  uint16_t srcNStride = 0;
  uint32_t dstDStride = 0;
  uint32_t dstNdMatrixStride = 1;
  Nz2NdParamsFull() = default;
  Nz2NdParamsFull(uint16_t matrices, uint16_t rows, uint16_t columns, uint16_t source_matrix_stride,
                  uint16_t source_column_stride, uint32_t row_stride, uint32_t matrix_stride)
      : ndNum(matrices),
        nValue(rows),
        dValue(columns),
        srcNdMatrixStride(source_matrix_stride),
        srcNStride(source_column_stride),
        dstDStride(row_stride),
        dstNdMatrixStride(matrix_stride) {}
};

}  // namespace AscendC

namespace opkit {

/// The pieces of one dimension; a slice whose ends do not fit its pieces is refused.
template <typename T>
inline uint32_t slice_pieces(const AscendC::SliceInfo& slice, bool is_innermost, Where where) {
  const uint32_t length = is_innermost ? slice.burstLen * kBlockBytes / static_cast<uint32_t>(sizeof(T)) : 1;
  const uint32_t period = length + slice.stride;
  if (length == 0 || slice.endIndex < slice.startIndex) illegal_operand("DataCopy: a slice is empty", where);
  const uint32_t extent = slice.endIndex - slice.startIndex + 1;
  const uint32_t pieces = (extent + slice.stride) / period;
  const bool is_fitting = pieces > 0 && pieces * period - slice.stride == extent;
  const bool is_inside = slice.shapeValue == 0 || slice.endIndex < slice.shapeValue;
  if (!is_fitting) {
    illegal_operand(
        "DataCopy: a slice's startIndex to endIndex is not a whole number of pieces of burstLen with stride "
        "between them",
        where);
  }
  if (!is_inside) illegal_operand("DataCopy: a slice's endIndex is not below its shapeValue", where);
  return pieces;
}

/// The element at which the row with the given number starts; rows count through the outer dimensions.
inline uint64_t slice_row_offset(const AscendC::SliceInfo* slices, const uint32_t* pieces, uint32_t dimensions,
                                 uint64_t row) {
  uint64_t offset = slices[0].startIndex;
  uint64_t extent = slices[0].shapeValue;
  for (uint32_t i = 1; i < dimensions; ++i) {
    offset += (slices[i].startIndex + row % pieces[i] * (slices[i].stride + 1)) * extent;
    row /= pieces[i];
    extent *= slices[i].shapeValue;
  }
  return offset;
}

template <typename T, typename Destination, typename Source>
inline void copy_slices(const Destination& dst, const Source& src, const AscendC::SliceInfo* dst_slices,
                        const AscendC::SliceInfo* src_slices, uint32_t dimensions, Where where) {
  constexpr uint32_t kMaxDimensions = 8;  // Source: K_MAX_DIM
  if (dimensions == 0 || dimensions > kMaxDimensions) illegal_operand("DataCopy: dimValue is not 1 to 8", where);
  uint32_t dst_pieces[kMaxDimensions];
  uint32_t src_pieces[kMaxDimensions];
  uint64_t dst_rows = 1;
  uint64_t src_rows = 1;
  for (uint32_t i = 0; i < dimensions; ++i) {
    dst_pieces[i] = slice_pieces<T>(dst_slices[i], i == 0, where);
    src_pieces[i] = slice_pieces<T>(src_slices[i], i == 0, where);
    if (i > 0) dst_rows *= dst_pieces[i];
    if (i > 0) src_rows *= src_pieces[i];
  }
  if (dst_rows != src_rows || dst_pieces[0] != src_pieces[0] || dst_slices[0].burstLen != src_slices[0].burstLen) {
    illegal_operand("DataCopy: the slices of dst and src have different numbers or lengths of pieces", where);
  }
  CopyShape shape;
  shape.burst_count = src_pieces[0];
  shape.burst_bytes = src_slices[0].burstLen * kBlockBytes;
  shape.src_stride = shape.burst_bytes + src_slices[0].stride * sizeof(T);
  shape.dst_stride = shape.burst_bytes + dst_slices[0].stride * sizeof(T);
  for (uint64_t row = 0; row < src_rows; ++row) {
    Operand to = dst.operand();
    Operand from = src.operand();
    to.address += slice_row_offset(dst_slices, dst_pieces, dimensions, row) * sizeof(T);
    from.address += slice_row_offset(src_slices, src_pieces, dimensions, row) * sizeof(T);
    issue_copy(Op::DataCopy, to, from, shape, where);
  }
}

}  // namespace opkit

namespace AscendC {

template <typename T>
inline void DataCopy(const LocalTensor<T>& dst, const GlobalTensor<T>& src, const SliceInfo dstSliceInfo[],
                     const SliceInfo srcSliceInfo[], const uint32_t dimValue = 1,
                     opkit::Where where = opkit::Where::here()) {
  opkit::copy_slices<T>(dst, src, dstSliceInfo, srcSliceInfo, dimValue, where);
}
template <typename T>
inline void DataCopy(const GlobalTensor<T>& dst, const LocalTensor<T>& src, const SliceInfo dstSliceInfo[],
                     const SliceInfo srcSliceInfo[], const uint32_t dimValue = 1,
                     opkit::Where where = opkit::Where::here()) {
  opkit::copy_slices<T>(dst, src, dstSliceInfo, srcSliceInfo, dimValue, where);
}

/// GM to UB or L1, one instruction for each matrix: row r, columns c*C0 to (c+1)*C0 land in the data block at
/// c * dstNzC0Stride + r * dstNzNStride; the last column is filled up with zeros. Of int4b_t the counts are bytes.
template <typename T, bool enableSmallC0 = false>
inline void DataCopy(const LocalTensor<T>& dst, const GlobalTensor<T>& src, const Nd2NzParams& params,
                     opkit::Where where = opkit::Where::here()) {
  static_assert(!enableSmallC0, "DataCopy: this chip does not have enableSmallC0");
  if constexpr (opkit::dtype_of<T>() == opkit::DType::S4) {
    return DataCopy(dst.template ReinterpretCast<int8_t>(), src.template ReinterpretCast<int8_t>(), params, where);
  }
  constexpr uint32_t kColumn = opkit::elements_in<T>(opkit::kBlockBytes);
  if (params.nValue == 0 || params.dValue == 0) return;
  const uint32_t planes = (params.dValue + kColumn - 1) / kColumn;
  opkit::CopyShape shape;
  shape.burst_count = params.nValue;
  shape.burst_bytes = opkit::bytes_of<T>(planes == 1 ? params.dValue : kColumn);
  shape.src_stride = opkit::bytes_of<T>(params.srcDValue);
  shape.dst_stride = uint64_t{params.dstNzNStride} * opkit::kBlockBytes;
  shape.plane_count = planes;
  shape.last_plane_bytes = opkit::bytes_of<T>(params.dValue - (planes - 1) * kColumn);
  shape.src_plane_stride = opkit::kBlockBytes;
  shape.dst_plane_stride = uint64_t{params.dstNzC0Stride} * opkit::kBlockBytes;
  shape.is_padded = true;
  shape.has_pad_value = true;
  for (uint32_t matrix = 0; matrix < params.ndNum; ++matrix) {
    opkit::issue_copy(opkit::Op::DataCopyNd2Nz, dst[matrix * params.dstNzMatrixStride].operand(),
                      src[uint64_t{matrix} * params.srcNdMatrixStride].operand(), shape, where);
  }
}

/// UB to GM, one instruction for each matrix: columns of 16 elements, each row of a column on its own.
template <typename T>
inline void DataCopy(const GlobalTensor<T>& dst, const LocalTensor<T>& src, const Nz2NdParamsFull& params,
                     opkit::Where where = opkit::Where::here()) {
  static_assert(sizeof(T) == 2 || sizeof(T) == 4, "DataCopy from NZ to ND takes 2-byte and 4-byte types");
  constexpr uint32_t kColumn = 16;
  if (params.dValue % kColumn != 0) opkit::illegal_operand("DataCopy: dValue is not a multiple of 16", where);
  if (params.nValue == 0 || params.dValue == 0) return;
  opkit::CopyShape shape;
  shape.burst_count = params.nValue;
  shape.burst_bytes = kColumn * sizeof(T);
  shape.src_stride = shape.burst_bytes;
  shape.dst_stride = uint64_t{params.dstDStride} * sizeof(T);
  shape.plane_count = params.dValue / kColumn;
  shape.last_plane_bytes = shape.burst_bytes;
  shape.src_plane_stride = uint64_t{params.srcNStride} * kColumn * sizeof(T);
  shape.dst_plane_stride = shape.burst_bytes;
  for (uint32_t matrix = 0; matrix < params.ndNum; ++matrix) {
    opkit::issue_copy(opkit::Op::DataCopyNz2Nd, dst[uint64_t{matrix} * params.dstNdMatrixStride].operand(),
                      src[matrix * params.srcNdMatrixStride * kColumn * kColumn].operand(), shape, where);
  }
}

/// Writes `value` to `size` elements of global memory. The vendor's goes through UB; here UB keeps its content.
template <typename T>
inline void InitOutput(const GlobalTensor<T>& dst, uint32_t size, T value = 0,
                       opkit::Where where = opkit::Where::here()) {
  opkit::Instr instr;
  instr.op = opkit::Op::InitOutput;
  instr.pipe = opkit::Pipe::MTE3;
  instr.dst = dst.operand();
  instr.count = size;
  instr.scalar_bits[0] = opkit::bits_of(value);
  instr.where = where;
  opkit::issue(instr);
}
template <typename T>
inline void Fill(GlobalTensor<T>& dst, const uint64_t size, const T value, opkit::Where where = opkit::Where::here()) {
  InitOutput(dst, static_cast<uint32_t>(size), value, where);
}
/// The older name of Fill.
template <typename T>
inline void InitGlobalMemory(GlobalTensor<T>& gmWorkspaceAddr, const uint64_t size, const T value,
                             opkit::Where where = opkit::Where::here()) {
  Fill(gmWorkspaceAddr, size, value, where);
}

}  // namespace AscendC
