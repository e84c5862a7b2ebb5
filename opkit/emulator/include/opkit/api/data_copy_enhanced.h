/// DataCopy with DataCopyEnhancedParams: L0C to UB, which only arch 2002 has. Source: Ascend C API, matrix computation
/// (ISASI), DataCopy from L0C to UB.
#pragma once

#include "opkit/api/data_copy.h"

// Public kernels name it without a namespace.
enum class pad_t : uint8_t { PAD_NONE = 0 };

namespace AscendC {

using ::pad_t;
enum class BlockMode : uint8_t {
  BLOCK_MODE_NORMAL = 0,
  BLOCK_MODE_MATRIX,
  BLOCK_MODE_VECTOR,
  BLOCK_MODE_SMALL_CHANNEL,
  BLOCK_MODE_DEPTHWISE
};
enum class DeqScale : uint8_t { DEQ_NONE = 0, DEQ, VDEQ, DEQ8, VDEQ8, DEQ16, VDEQ16 };

struct DataCopyEnhancedParams {
  BlockMode blockMode = BlockMode::BLOCK_MODE_NORMAL;
  DeqScale deqScale = DeqScale::DEQ_NONE;
  uint64_t deqValue = 0;
  uint8_t sidStoreMode = 0;
  bool isRelu = false;
  pad_t padMode = pad_t::PAD_NONE;
  uint64_t padValue = 0;
  uint64_t deqTensorAddr = 0;
};

/// Fractals of 16 x 16 elements from L0C to UB: blockLen and srcStride count fractals, dstStride data blocks. On every
/// other path it is the plain copy.
template <typename T>
inline void DataCopy(const LocalTensor<T>& dst, const LocalTensor<T>& src, const DataCopyParams& intriParams,
                     const DataCopyEnhancedParams& enhancedParams, opkit::Where where = opkit::Where::here()) {
  const opkit::Operand source = src.operand();
  if (source.space != opkit::Space::L0C) return DataCopy(dst, src, intriParams, where);
  static_assert(sizeof(T) == 2 || sizeof(T) == 4, "DataCopy from L0C takes 2-byte and 4-byte types");
  if (!opkit::kIsCoupled) opkit::illegal_operand("DataCopy: only Ascend310P copies L0C to UB; use Fixpipe", where);
  const bool is_plain = enhancedParams.blockMode == BlockMode::BLOCK_MODE_MATRIX &&
                        enhancedParams.deqScale == DeqScale::DEQ_NONE && !enhancedParams.isRelu;
  if (!is_plain) {
    opkit::illegal_operand("DataCopy from L0C: opkit has BLOCK_MODE_MATRIX with DEQ_NONE and without ReLU", where);
  }
  constexpr uint32_t kSide = 16;
  constexpr uint64_t kFractal = uint64_t{kSide} * kSide * sizeof(T);
  opkit::CopyShape shape;
  shape.burst_count = intriParams.blockCount;
  shape.burst_bytes = static_cast<uint32_t>(intriParams.blockLen * kFractal);
  shape.src_stride = shape.burst_bytes + intriParams.srcStride * kFractal;
  shape.dst_stride = shape.burst_bytes + uint64_t{intriParams.dstStride} * opkit::kBlockBytes;
  opkit::issue_copy(opkit::Op::DataCopy, dst.operand(), source, shape, where);
}

/// The same to another type.
template <typename T, typename U, typename = std::enable_if_t<!std::is_same_v<T, U>>>
inline void DataCopy(const LocalTensor<T>&, const LocalTensor<U>&, const DataCopyParams&, const DataCopyEnhancedParams&,
                     opkit::Where where = opkit::Where::here()) {
  if (!opkit::kIsCoupled) opkit::illegal_operand("DataCopy: only Ascend310P copies L0C to UB; use Fixpipe", where);
  opkit::illegal_operand("DataCopy from L0C: opkit has none that changes the type", where);
}

}  // namespace AscendC
