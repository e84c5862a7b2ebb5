/// BilinearInterpolation: data blocks gathered, weighted and summed. Source: Ascend C API, basic arithmetic.
#pragma once

#include "opkit/api/sync.h"
#include "opkit/api/vector_elementwise.h"
#include "opkit/api/vector_fill.h"
#include "opkit/api/vector_gather.h"

namespace opkit::vec {

/// The parameters that both of its forms share.
template <typename T>
struct Bilinear {
  AscendC::LocalTensor<T> dst;
  AscendC::LocalTensor<T> gathered;  ///< the data blocks of src0, a repeat behind the other
  AscendC::LocalTensor<T> weights;   ///< a data block of each element of src1
  uint32_t horizontal;
  uint32_t vertical;
  bool is_weight_per_block;
  uint16_t dst_block_stride;
  uint16_t row_offset;
  Where where;

  static constexpr uint32_t kLanes = kRepeatBytes / sizeof(T);

  AscendC::LocalTensor<T> product(uint32_t row, uint32_t column) const {
    return gathered[(row * horizontal + column) * kLanes];
  }
};

/// The steps that A2 takes for it: Gatherb, Brcb, Mul and Add, as its page lists them.
template <typename T, typename Mask>
inline void interpolate(const Bilinear<T>& call, const AscendC::LocalTensor<T>& src0,
                        const AscendC::LocalTensor<uint32_t>& offsets, const AscendC::LocalTensor<T>& src1, Mask mask) {
  using namespace AscendC;
  constexpr uint32_t kMost = 255;  // repeat times of one instruction
  const Where where = call.where;
  const uint32_t repeats = call.horizontal * call.vertical;
  const uint32_t weights = call.is_weight_per_block ? repeats * kBlocksPerRepeat : repeats;
  const auto in_parts = [](uint32_t total, auto&& part) {
    for (uint32_t first = 0; first < total; first += kMost) part(first, total - first < kMost ? total - first : kMost);
  };
  in_parts(repeats, [&](uint32_t first, uint32_t count) {
    Gatherb(call.gathered[first * call.kLanes].template ReinterpretCast<uint16_t>(),
            src0.template ReinterpretCast<uint16_t>(), offsets[first * kBlocksPerRepeat], static_cast<uint8_t>(count),
            GatherRepeatParams(1, kBlocksPerRepeat), where);
  });
  in_parts((weights + kBlocksPerRepeat - 1) / kBlocksPerRepeat, [&](uint32_t first, uint32_t count) {
    Brcb(call.weights[first * call.kLanes], src1[first * kBlocksPerRepeat], static_cast<uint8_t>(count),
         BrcbRepeatParams(1, kBlocksPerRepeat), where);
  });
  PipeBarrier<PIPE_V>(where);
  const uint8_t block_step = call.is_weight_per_block ? 1 : 0;
  const uint8_t repeat_step = call.is_weight_per_block ? kBlocksPerRepeat : 1;
  in_parts(repeats, [&](uint32_t first, uint32_t count) {
    const LocalTensor<T> products = call.gathered[first * call.kLanes];
    Mul(products, products, call.weights[first * repeat_step * (kBlockBytes / sizeof(T))], mask,
        static_cast<uint8_t>(count), BinaryRepeatParams(1, 1, block_step, 8, 8, repeat_step), where);
  });
  PipeBarrier<PIPE_V>(where);
  const uint8_t stride = static_cast<uint8_t>(call.dst_block_stride);
  for (uint32_t row = 0; row < call.vertical; ++row) {
    const LocalTensor<T> dst = call.dst[row * call.row_offset];
    if (call.horizontal == 1) {
      Copy(dst, call.product(row, 0), mask, 1, CopyRepeatParams(call.dst_block_stride, 1, 8, 8), where);
      continue;
    }
    Add(dst, call.product(row, 0), call.product(row, 1), mask, 1, BinaryRepeatParams(stride, 1, 1, 8, 8, 8), where);
    for (uint32_t column = 2; column < call.horizontal; ++column) {
      PipeBarrier<PIPE_V>(where);
      Add(dst, dst, call.product(row, column), mask, 1, BinaryRepeatParams(stride, stride, 1, 8, 8, 8), where);
    }
  }
}

}  // namespace opkit::vec

namespace AscendC {

/// Gathers hRepeat * vRepeat repeats of data blocks, multiplies them by the elements of `src1` (one a repeat, or with
/// repeatMode one a data block) and adds hRepeat of them together into each of vRepeat rows of `dst`.
/// `sharedTmpBuffer` holds the gathered blocks and, behind them, a block for each element of `src1`.
#define OPKIT_BILINEAR(mask_parameter)                                                                           \
  template <typename T>                                                                                          \
  inline void BilinearInterpolation(                                                                             \
      const LocalTensor<T>& dst, const LocalTensor<T>& src0, const LocalTensor<uint32_t>& src0Offset,            \
      const LocalTensor<T>& src1, mask_parameter, uint8_t hRepeat, bool repeatMode, uint16_t dstBlkStride,       \
      uint16_t vROffset, uint8_t vRepeat, const LocalTensor<uint8_t>& sharedTmpBuffer, OPKIT_HERE) {             \
    static_assert(std::is_same_v<T, half>, "BilinearInterpolation takes half");                                  \
    static_assert(sizeof(T) > 0 && !opkit::kIsCoupled,                                                           \
                  "BilinearInterpolation: not yet built for this chip; see `opkit isa --missing`");              \
    if (hRepeat == 0 || vRepeat == 0) {                                                                          \
      ::opkit::illegal_operand("BilinearInterpolation: hRepeat and vRepeat are 1 to 255", where);                \
    }                                                                                                            \
    if (vROffset < 128 || vROffset % (opkit::kBlockBytes / sizeof(T)) != 0) {                                    \
      ::opkit::illegal_operand("BilinearInterpolation: vROffset is 128 or more, in whole data blocks", where);   \
    }                                                                                                            \
    if (dstBlkStride > 255) {                                                                                    \
      ::opkit::illegal_operand("BilinearInterpolation: opkit has block strides to 255", where);                  \
    }                                                                                                            \
    const LocalTensor<T> buffer = sharedTmpBuffer.template ReinterpretCast<T>();                                 \
    const uint32_t gathered = uint32_t{hRepeat} * vRepeat * (opkit::kRepeatBytes / sizeof(T));                   \
    opkit::vec::interpolate(opkit::vec::Bilinear<T>{dst, buffer, buffer[gathered], hRepeat, vRepeat, repeatMode, \
                                                    dstBlkStride, vROffset, where},                              \
                            src0, src0Offset, src1, mask);                                                       \
  }
OPKIT_BILINEAR(const uint64_t* mask)
OPKIT_BILINEAR(uint64_t mask)
#undef OPKIT_BILINEAR

}  // namespace AscendC
