/// Pad and UnPad: rows of a matrix with and without padding to data blocks. Source: Ascend C API, high-level API,
/// tensor transformation.
#pragma once

#include "opkit/api/vector_tiling.h"
#include "opkit/high_level/elementwise.h"
#include "opkit/high_level/index.h"

namespace AscendC {

struct PadParams {
  uint16_t leftPad = 0;
  uint16_t rightPad = 0;
  int32_t padValue = 0;
};

struct UnPadParams {
  uint16_t leftPad = 0;
  uint16_t rightPad = 0;
};

}  // namespace AscendC

namespace opkit::high_level {

/// Fills `lanes` of one data block of every row.
template <typename T>
inline void fill_lanes(const AscendC::LocalTensor<T>& block, T value, uint64_t lanes, uint32_t rows, uint32_t width,
                       Where where) {
  if (lanes == 0) return;
  const uint64_t mask[2] = {lanes, 0};
  for (uint32_t row = 0; row < rows; ++row) AscendC::Duplicate(block[row * width], value, mask, 1, 1, 8, where);
}

constexpr uint64_t low_lanes(uint32_t count) { return (uint64_t{1} << count) - 1; }

}  // namespace opkit::high_level

namespace AscendC {

/// Rows of the tiling's width, or those padded already whose last rightPad elements are replaced.
template <typename T>
inline void Pad(const LocalTensor<T>& dstTensor, const LocalTensor<T>& srcTensor, PadParams& padParams,
                const LocalTensor<uint8_t>& sharedTmpBuffer, PadTiling& tiling, OPKIT_HERE) {
  using namespace opkit::high_level;
  constexpr uint32_t kBlock = opkit::kBlockBytes / sizeof(T);
  const uint32_t rows = tiling.srcHeight, source = tiling.srcWidth;
  const uint32_t left = padParams.leftPad, right = padParams.rightPad;
  const bool is_padded = source % kBlock == 0;
  const uint32_t width = is_padded ? source : source + left + right;
  if (width % kBlock != 0 || width > round_up(source, kBlock) || right >= kBlock || (is_padded && left != 0)) {
    opkit::illegal_operand("Pad: rows with both pads have to fill the data blocks that the rows need, no more", where);
  }
  if (is_padded) {
    Adds(dstTensor.template ReinterpretCast<int16_t>(), srcTensor.template ReinterpretCast<int16_t>(), int16_t{0},
         static_cast<int32_t>(rows * width * sizeof(T) / sizeof(int16_t)), where);
  } else {
    if (sharedTmpBuffer.GetSize() < width * sizeof(uint32_t)) {
      opkit::illegal_operand("Pad: its temporary space is smaller than an offset for each element of a row", where);
    }
    // Element i of a row comes from i - left; what stands in the pads is replaced afterwards.
    const auto offsets = sharedTmpBuffer.template ReinterpretCast<int32_t>();
    constexpr auto kBytes = static_cast<int32_t>(sizeof(T));
    opkit::high_level::synchronize<HardEvent::V_S>(where);
    for (uint32_t i = 0; i < width; ++i) {
      const uint32_t element = i < left ? 0 : i - left < source ? i - left : source - 1;
      offsets.SetValue(i, static_cast<int32_t>(element) * kBytes, where);
    }
    opkit::high_level::synchronize<HardEvent::S_V>(where);
    for (uint32_t row = 0; row < rows; ++row) {
      Gather(dstTensor[row * width], srcTensor, offsets.template ReinterpretCast<uint32_t>(),
             static_cast<uint32_t>(row * source * sizeof(T)), width, where);
    }
  }
  PipeBarrier<PIPE_V>();
  const T value = static_cast<T>(padParams.padValue);
  fill_lanes(dstTensor, value, low_lanes(left), rows, width, where);
  PipeBarrier<PIPE_V>();
  fill_lanes(dstTensor[width - kBlock], value, low_lanes(kBlock) & ~low_lanes(kBlock - right), rows, width, where);
  PipeBarrier<PIPE_V>();
}
template <typename T>
inline void Pad(const LocalTensor<T>& dstTensor, const LocalTensor<T>& srcTensor, PadParams& padParams,
                PadTiling& tiling, OPKIT_HERE) {
  Pad(dstTensor, srcTensor, padParams, opkit::high_level::free_space(), tiling, where);
}

/// Rows without their last rightPad elements, one behind the other.
template <typename T>
inline void UnPad(const LocalTensor<T>& dstTensor, const LocalTensor<T>& srcTensor, UnPadParams& unPadParams,
                  const LocalTensor<uint8_t>& sharedTmpBuffer, UnPadTiling& tiling, OPKIT_HERE) {
  using Word = std::conditional_t<sizeof(T) == 4, uint32_t, uint16_t>;
  constexpr uint32_t kBlock = opkit::kBlockBytes / sizeof(T), kWordBits = sizeof(Word) * 8;
  const uint32_t rows = tiling.srcHeight, width = tiling.srcWidth;
  if (width == 0 || width % kBlock != 0 || unPadParams.rightPad >= kBlock || unPadParams.rightPad == 0) {
    opkit::illegal_operand("UnPad: rows are whole data blocks, and rightPad is more than 0 and less than a block",
                           where);
  }
  const uint32_t kept = width - unPadParams.rightPad;
  const uint32_t words = (width + kWordBits - 1) / kWordBits;
  if (sharedTmpBuffer.GetSize() < words * sizeof(Word)) {
    opkit::illegal_operand("UnPad: its temporary space is smaller than a bit for each element of a row", where);
  }
  const auto pattern = sharedTmpBuffer.template ReinterpretCast<Word>();
  opkit::high_level::synchronize<HardEvent::V_S>(where);
  for (uint32_t i = 0; i < words; ++i) {
    const uint32_t begin = i * kWordBits, ones = kept <= begin ? 0 : kept - begin;
    pattern.SetValue(i, static_cast<Word>(ones >= kWordBits ? ~Word{0} : opkit::high_level::low_lanes(ones)), where);
  }
  opkit::high_level::synchronize<HardEvent::S_V>(where);
  uint64_t picked = 0;
  GatherMask(dstTensor, srcTensor, pattern, true, width,
             GatherMaskParams(1, static_cast<uint16_t>(rows), static_cast<uint16_t>(width / kBlock), 0), picked, where);
  PipeBarrier<PIPE_V>();
}
template <typename T>
inline void UnPad(const LocalTensor<T>& dstTensor, const LocalTensor<T>& srcTensor, UnPadParams& unPadParams,
                  UnPadTiling& tiling, OPKIT_HERE) {
  UnPad(dstTensor, srcTensor, unPadParams, opkit::high_level::free_space(), tiling, where);
}

}  // namespace AscendC
