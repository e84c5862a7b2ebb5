/// Select by a mask of numbers, and DropOut. Source: Ascend C API, high-level API, data filtering.
#pragma once

#include "opkit/high_level/elementwise.h"

namespace AscendC {

struct SelectWithBytesMaskShapeInfo {
  SelectWithBytesMaskShapeInfo() = default;
  SelectWithBytesMaskShapeInfo(uint32_t first, uint32_t src_last, uint32_t mask_last)
      : firstAxis(first), srcLastAxis(src_last), maskLastAxis(mask_last) {}

  uint32_t firstAxis = 0;
  uint32_t srcLastAxis = 0;
  uint32_t maskLastAxis = 0;
};

struct DropOutShapeInfo {
  DropOutShapeInfo() = default;

  uint32_t firstAxis = 0;
  uint32_t srcLastAxis = 0;
  uint32_t maskLastAxis = 0;
};

}  // namespace AscendC

namespace opkit::high_level {

/// Rows of a matrix and of its mask, which may be longer; equal lengths are one row.
struct MaskedRows {
  uint32_t rows;
  uint32_t width;
  uint32_t mask_width;

  template <typename Info>
  explicit MaskedRows(const Info& info) : rows(info.firstAxis), width(info.srcLastAxis), mask_width(info.maskLastAxis) {
    if (width != mask_width) return;
    width = mask_width = rows * width;
    rows = 1;
  }
};

/// dst[i] = (mask[i] == 0) == takes_zeros ? tensor[i] : scalar, in parts of whole mask blocks: the mask becomes half or
/// float, and compared with 0 it becomes bits.
template <typename T, typename U>
inline void select_row(const AscendC::LocalTensor<T>& dst, const AscendC::LocalTensor<T>& tensor, T scalar,
                       const AscendC::LocalTensor<U>& mask, const AscendC::LocalTensor<uint8_t>& space, uint32_t count,
                       bool takes_zeros, Where where) {
  using namespace AscendC;
  constexpr bool is_wide = sizeof(U) == 4;
  using Number = std::conditional_t<is_wide, float, half>;
  const uint32_t part = selected_elements(space.GetSize(), sizeof(Number));
  if (part == 0)
    illegal_operand("Select or DropOut: its temporary space is smaller than 256 mask elements need", where);
  const auto numbers = space.template ReinterpretCast<Number>();
  const LocalTensor<uint8_t> bits = space[part * sizeof(Number)];
  for (uint32_t begin = 0; begin < count; begin += part) {
    const uint32_t length = count - begin < part ? count - begin : part;
    const uint32_t compared = round_up(length, kMaskElements);
    Duplicate(numbers, static_cast<Number>(0.0f), static_cast<int32_t>(compared), where);
    PipeBarrier<PIPE_V>();
    // Whether a number is 0 does not depend on its sign.
    if constexpr (is_wide) {
      Cast(numbers, mask[begin].template ReinterpretCast<int32_t>(), RoundMode::CAST_NONE, length, where);
    } else if constexpr (sizeof(U) == 2) {
      Cast(numbers, mask[begin].template ReinterpretCast<int16_t>(), RoundMode::CAST_NONE, length, where);
    } else {
      Cast(numbers, mask[begin].template ReinterpretCast<uint8_t>(), RoundMode::CAST_NONE, length, where);
    }
    PipeBarrier<PIPE_V>();
    CompareScalar(bits, numbers, static_cast<Number>(0.0f), takes_zeros ? CMPMODE::EQ : CMPMODE::NE, compared, where);
    PipeBarrier<PIPE_V>();
    AscendC::Select(dst[begin], bits, tensor[begin], scalar, SELMODE::VSEL_TENSOR_SCALAR_MODE, length, where);
    PipeBarrier<PIPE_V>();
  }
}

template <typename T, typename U>
inline void select_rows(const AscendC::LocalTensor<T>& dst, const AscendC::LocalTensor<T>& tensor, T scalar,
                        const AscendC::LocalTensor<U>& mask, const AscendC::LocalTensor<uint8_t>& space,
                        const MaskedRows& rows, bool takes_zeros, Where where) {
  for (uint32_t row = 0; row < rows.rows; ++row) {
    select_row(dst[row * rows.width], tensor[row * rows.width], scalar, mask[row * rows.mask_width], space, rows.width,
               takes_zeros, where);
  }
}

}  // namespace opkit::high_level

namespace AscendC {

/// The tensor where the mask is 0, the scalar elsewhere.
template <typename T, typename U, bool isReuseMask = true>
inline void Select(const LocalTensor<T>& dst, const LocalTensor<T>& src0, T src1, const LocalTensor<U>& mask,
                   const LocalTensor<uint8_t>& sharedTmpBuffer, const SelectWithBytesMaskShapeInfo& info, OPKIT_HERE) {
  opkit::high_level::select_rows(dst, src0, src1, mask, sharedTmpBuffer, opkit::high_level::MaskedRows(info), true,
                                 where);
}
/// The scalar where the mask is 0, the tensor elsewhere.
template <typename T, typename U, bool isReuseMask = true>
inline void Select(const LocalTensor<T>& dst, T src0, const LocalTensor<T>& src1, const LocalTensor<U>& mask,
                   const LocalTensor<uint8_t>& sharedTmpBuffer, const SelectWithBytesMaskShapeInfo& info, OPKIT_HERE) {
  opkit::high_level::select_rows(dst, src1, src0, mask, sharedTmpBuffer, opkit::high_level::MaskedRows(info), false,
                                 where);
}
/// The older name.
template <typename T, typename U, bool isReuseMask = true>
inline void SelectWithBytesMask(const LocalTensor<T>& dst, const LocalTensor<T>& src0, T src1,
                                const LocalTensor<U>& mask, const LocalTensor<uint8_t>& sharedTmpBuffer,
                                const SelectWithBytesMaskShapeInfo& info, OPKIT_HERE) {
  Select<T, U, isReuseMask>(dst, src0, src1, mask, sharedTmpBuffer, info, where);
}
template <typename T, typename U, bool isReuseMask = true>
inline void SelectWithBytesMask(const LocalTensor<T>& dst, T src0, const LocalTensor<T>& src1,
                                const LocalTensor<U>& mask, const LocalTensor<uint8_t>& sharedTmpBuffer,
                                const SelectWithBytesMaskShapeInfo& info, OPKIT_HERE) {
  Select<T, U, isReuseMask>(dst, src0, src1, mask, sharedTmpBuffer, info, where);
}

// Values of dropOutMode. Sources: names, ops-transformer flash_attention_score; numbers, the page of DropOut, where a
// mask whose rows are padded has dirty bytes.
constexpr uint32_t DROPOUT_MODE_BYTE_MISALIGN = 1;
constexpr uint32_t DROPOUT_MODE_BYTE_ALIGN = 2;
constexpr uint32_t DROPOUT_MODE_BIT_ALIGN = 3;
constexpr uint32_t DROPOUT_MODE_BIT_MISALIGN = 4;

/// src / keepProb where the mask says so, 0 elsewhere. A mask is a byte an element, or a bit, the lowest first; its
/// rows may be padded. dropOutMode 0: which it is follows from the lengths of rows.
template <typename T, bool isInitBitMode = false, uint32_t dropOutMode = 0>
inline void DropOut(const LocalTensor<T>& dstLocal, const LocalTensor<T>& srcLocal,
                    const LocalTensor<uint8_t>& maskLocal, const LocalTensor<uint8_t>& sharedTmpBuffer,
                    const float keepProb, const DropOutShapeInfo& info, OPKIT_HERE) {
  using namespace opkit::high_level;
  static_assert(dropOutMode <= 4, "DropOut: dropOutMode is 0 to 4");
  const bool has_bytes = dropOutMode == 0 ? info.srcLastAxis <= info.maskLastAxis : dropOutMode <= 2;
  if (has_bytes) {
    select_rows(dstLocal, srcLocal, static_cast<T>(0.0f), maskLocal, sharedTmpBuffer, MaskedRows(info), false, where);
  } else if (info.srcLastAxis == info.maskLastAxis * 8) {
    AscendC::Select(dstLocal, maskLocal, srcLocal, static_cast<T>(0.0f), SELMODE::VSEL_TENSOR_SCALAR_MODE,
                    info.firstAxis * info.srcLastAxis, where);
  } else {
    for (uint32_t row = 0; row < info.firstAxis; ++row) {
      const uint32_t at = row * info.srcLastAxis;
      AscendC::Select(dstLocal[at], maskLocal[row * info.maskLastAxis], srcLocal[at], static_cast<T>(0.0f),
                      SELMODE::VSEL_TENSOR_SCALAR_MODE, info.srcLastAxis, where);
    }
  }
  PipeBarrier<PIPE_V>();
  Muls(dstLocal, dstLocal, static_cast<T>(1.0f / keepProb), static_cast<int32_t>(info.firstAxis * info.srcLastAxis),
       where);
  PipeBarrier<PIPE_V>();
}
template <typename T, bool isInitBitMode = false, uint32_t dropOutMode = 0>
inline void DropOut(const LocalTensor<T>& dstLocal, const LocalTensor<T>& srcLocal,
                    const LocalTensor<uint8_t>& maskLocal, const float keepProb, const DropOutShapeInfo& info,
                    OPKIT_HERE) {
  DropOut<T, isInitBitMode, dropOutMode>(dstLocal, srcLocal, maskLocal, opkit::high_level::free_space(), keepProb, info,
                                         where);
}

}  // namespace AscendC
