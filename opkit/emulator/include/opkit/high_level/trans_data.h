/// TransData between NCDHW and the formats that split channels into sixteens. Source: Ascend C API, high-level API,
/// tensor transformation.
#pragma once

#include "opkit/api/data_copy.h"
#include "opkit/api/layout.h"
#include "opkit/high_level/elementwise.h"
#include "opkit/high_level/types.h"

namespace AscendC {

template <typename T, typename U>
struct TransDataParams {
  T srcLayout;
  U dstLayout;
};

}  // namespace AscendC

namespace opkit::high_level {

using Words = AscendC::LocalTensor<uint16_t>;  ///< 16-bit elements of any type: they are only moved

/// Sizes of an NCDHW tensor, whose H and W are one axis that is padded to a multiple of 16, and how its channels lie
/// where they are split.
struct ChannelBlocks {
  static constexpr uint32_t kC0 = 16, kN0 = 16;

  uint32_t n, c, d, hw;
  bool is_fractal;  ///< FRACTAL_Z_3D; else NDC1HWC0

  uint32_t padded() const { return round_up(hw, 16); }
  uint32_t c1() const { return (c + kC0 - 1) / kC0; }
  uint32_t n1() const { return (n + kN0 - 1) / kN0; }
  uint32_t plane(uint32_t in, uint32_t ic, uint32_t id) const { return ((in * c + ic) * d + id) * padded(); }
  /// Where the 16 channels of the first pixel stand, and how many sixteens on those of the next.
  uint32_t block(uint32_t in, uint32_t ic1, uint32_t id) const {
    if (!is_fractal) return ((in * d + id) * c1() + ic1) * hw * kC0;
    return ((id * c1() + ic1) * hw * n1() * kN0 + in) * kC0;
  }
  uint32_t block_step() const { return is_fractal ? n1() * kN0 : 1; }
  uint32_t split_size() const { return (is_fractal ? n1() * kN0 : n) * d * c1() * hw * kC0; }
};

/// Transposes sixteen rows of `length` elements to rows of sixteen, or the reverse: list[i] is row i.
template <bool to_blocks>
inline void turn(const Words (&rows)[16], const Words& blocks, uint32_t length, Where where) {
  constexpr uint32_t kMostRepeats = 255;
  for (uint32_t at = 0; at < length;) {
    const uint32_t left = (length - at) / 16, repeats = left < kMostRepeats ? left : kMostRepeats;
    Words row_list[16], block_list[16];
    for (uint32_t i = 0; i < 16; ++i) {
      row_list[i] = rows[i][at];
      block_list[i] = blocks[(at + i) * 16];
    }
    const auto step = [&](uint32_t blocks_a_repeat) {
      return static_cast<uint16_t>(repeats > 1 ? blocks_a_repeat : 0);
    };
    const auto repeat = static_cast<uint8_t>(repeats);
    if constexpr (to_blocks) {
      AscendC::TransDataTo5HD<uint16_t>(block_list, row_list, {false, false, repeat, step(16), step(1)}, where);
    } else {
      AscendC::TransDataTo5HD<uint16_t>(row_list, block_list, {false, false, repeat, step(1), step(16)}, where);
    }
    at += repeats * 16;
  }
  AscendC::PipeBarrier<PIPE_V>();
}

/// Copies a pixel's sixteen channels after another, `dst_step` and `src_step` sixteens on.
inline void copy_blocks(const Words& dst, const Words& src, uint32_t count, uint32_t dst_step, uint32_t src_step,
                        Where where) {
  AscendC::DataCopy(dst, src,
                    AscendC::DataCopyParams(static_cast<uint16_t>(count), 1, static_cast<uint16_t>(src_step - 1),
                                            static_cast<uint16_t>(dst_step - 1)),
                    where);
  AscendC::PipeBarrier<PIPE_V>();
}

template <bool to_blocks>
inline void trans_data(const Words& dst, const Words& src, const AscendC::LocalTensor<uint8_t>& space,
                       const ChannelBlocks& sizes, Where where) {
  const uint32_t length = sizes.padded();
  if (space.GetSize() < trans_data_bytes(1, sizes.hw)) {
    illegal_operand("TransData: its temporary space is smaller than 17 channels of an image", where);
  }
  const Words blocks = space.template ReinterpretCast<uint16_t>(), spare = blocks[16 * length];
  if (to_blocks && (sizes.is_fractal || sizes.c % 16 != 0)) {
    // What stands for channels and images that there are not is 0.
    AscendC::Duplicate(dst, uint16_t{0}, static_cast<int32_t>(sizes.split_size()), where);
    AscendC::Duplicate(spare, uint16_t{0}, static_cast<int32_t>(length), where);
    AscendC::PipeBarrier<PIPE_V>();
  }
  for (uint32_t n = 0; n < sizes.n; ++n) {
    for (uint32_t c1 = 0; c1 < sizes.c1(); ++c1) {
      for (uint32_t d = 0; d < sizes.d; ++d) {
        Words rows[16];
        for (uint32_t i = 0; i < 16; ++i) {
          const uint32_t c = c1 * 16 + i;
          rows[i] = c >= sizes.c ? spare : (to_blocks ? src : dst)[sizes.plane(n, c, d)];
        }
        const uint32_t at = sizes.block(n, c1, d);
        if constexpr (to_blocks) {
          turn<true>(rows, blocks, length, where);
          copy_blocks(dst[at], blocks, sizes.hw, sizes.block_step(), 1, where);
        } else {
          if (length != sizes.hw) {
            AscendC::Duplicate(blocks[sizes.hw * 16], uint16_t{0}, static_cast<int32_t>((length - sizes.hw) * 16),
                               where);
          }
          copy_blocks(blocks, src[at], sizes.hw, 1, sizes.block_step(), where);
          turn<false>(rows, blocks, length, where);
        }
      }
    }
  }
}

}  // namespace opkit::high_level

namespace AscendC {

/// Of NCDHW, H and W are one axis, padded to a multiple of 32 bytes; shapes are given without padding. Channels and
/// images that fill up sixteens are 0.
template <const TransDataConfig& config, typename T, typename U, typename S>
inline void TransData(const LocalTensor<T>& dstTensor, const LocalTensor<T>& srcTensor,
                      const LocalTensor<uint8_t>& sharedTmpBuffer, const TransDataParams<U, S>& params, OPKIT_HERE) {
  using namespace opkit::high_level;
  constexpr bool kToBlocks = config.srcFormat == DataFormat::NCDHW;
  constexpr DataFormat kOther = kToBlocks ? config.dstFormat : config.srcFormat;
  static_assert(sizeof(T) == 2, "TransData takes types of 16 bits");
  static_assert((kToBlocks || config.dstFormat == DataFormat::NCDHW) &&
                    (kOther == DataFormat::NDC1HWC0 || kOther == DataFormat::FRACTAL_Z_3D),
                "TransData converts between NCDHW and NDC1HWC0 or FRACTAL_Z_3D");
  const auto sizes_of = [](const auto& shape) {
    const auto size = [&](auto value) { return static_cast<uint32_t>(value); };
    return ChannelBlocks{size(std::get<0>(shape)), size(std::get<1>(shape)), size(std::get<2>(shape)),
                         size(std::get<3>(shape)) * size(std::get<4>(shape)), kOther == DataFormat::FRACTAL_Z_3D};
  };
  const auto words = [](const LocalTensor<T>& tensor) { return tensor.template ReinterpretCast<uint16_t>(); };
  if constexpr (kToBlocks) {
    trans_data<true>(words(dstTensor), words(srcTensor), sharedTmpBuffer, sizes_of(params.srcLayout.GetShape()), where);
  } else {
    trans_data<false>(words(dstTensor), words(srcTensor), sharedTmpBuffer, sizes_of(params.dstLayout.GetShape()),
                      where);
  }
}
template <const TransDataConfig& config, typename T, typename U, typename S>
inline void TransData(const LocalTensor<T>& dstTensor, const LocalTensor<T>& srcTensor,
                      const TransDataParams<U, S>& params, OPKIT_HERE) {
  TransData<config>(dstTensor, srcTensor, opkit::high_level::free_space(), params, where);
}

}  // namespace AscendC
