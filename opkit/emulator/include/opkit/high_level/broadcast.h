/// Broadcast of a column or a row over a matrix. Source: Ascend C API, high-level API, tensor transformation,
/// Broadcast; the older name BroadCast means the same.
///
/// A column becomes a data block a row (Brcb), the blocks become rows (Copy), and where a row is not whole blocks
/// GatherMask joins the rows. Bytes travel as halves, which hold all of their values.
#pragma once

#include <algorithm>
#include <type_traits>

#include "opkit/high_level/conversion_space.h"
#include "opkit/high_level/elementwise.h"

namespace opkit::high_level {

/// Copies each row's data block over `row_blocks` blocks: with as few instructions as either way takes, one for every
/// eight blocks of all rows, or for all blocks of a row.
template <typename T>
inline void spread_blocks(const AscendC::LocalTensor<T>& dst, const AscendC::LocalTensor<T>& blocks, uint32_t rows,
                          uint32_t row_blocks, Where where) {
  using namespace AscendC;
  constexpr uint32_t kBlockElements = kBlockBytes / sizeof(T);
  constexpr uint64_t kRepeatElements = kBlocksPerRepeat * kBlockElements;
  const uint32_t whole = row_blocks / kBlocksPerRepeat, rest = row_blocks % kBlocksPerRepeat;
  const bool is_by_rows = rows * ((whole + UINT8_MAX - 1) / UINT8_MAX) < whole;
  for (uint32_t row = 0; is_by_rows && row < rows; ++row) {
    for (uint32_t done = 0; done < whole; done += UINT8_MAX) {
      const uint32_t first = row * row_blocks + done * kBlocksPerRepeat;
      Copy(dst[first * kBlockElements], blocks[row * kBlockElements], kRepeatElements,
           static_cast<uint8_t>(std::min<uint32_t>(whole - done, UINT8_MAX)),
           CopyRepeatParams(1, 0, kBlocksPerRepeat, 0), where);
    }
  }
  for (uint32_t part = is_by_rows ? whole : 0; part < whole + (rest > 0); ++part) {
    const uint64_t count = part < whole ? kRepeatElements : rest * kBlockElements;
    Copy(dst[part * kRepeatElements], blocks, count, static_cast<uint8_t>(rows),
         CopyRepeatParams(1, 0, static_cast<uint16_t>(row_blocks), 1), where);
  }
}

/// One data block a row, each filled with the row's element. Eight rows an instruction; the others, which Brcb would
/// read beyond, one by one.
template <typename T>
inline void fill_blocks(const AscendC::LocalTensor<T>& blocks, const AscendC::LocalTensor<T>& column, uint32_t rows,
                        Where where) {
  using namespace AscendC;
  constexpr uint32_t kBlockElements = kBlockBytes / sizeof(T);
  const uint32_t whole = rows / kBlocksPerRepeat;
  if (whole > 0) {
    Brcb(blocks, column, static_cast<uint8_t>(whole), BrcbRepeatParams(1, kBlocksPerRepeat), where);
  }
  if (whole * kBlocksPerRepeat == rows) return;
  const auto to_scalar = static_cast<event_t>(GetTPipePtr()->FetchEventID(HardEvent::V_S));
  SetFlag<HardEvent::V_S>(to_scalar);
  WaitFlag<HardEvent::V_S>(to_scalar);
  for (uint32_t row = whole * kBlocksPerRepeat; row < rows; ++row) {
    Duplicate(blocks[row * kBlockElements], column.GetValue(row, where), static_cast<int32_t>(kBlockElements), where);
  }
}

/// `rows` rows of `columns` elements from one element each.
template <typename T>
inline void broadcast_column(const AscendC::LocalTensor<T>& dst, const AscendC::LocalTensor<T>& column, uint32_t rows,
                             uint32_t columns, const AscendC::LocalTensor<T>& work, Where where) {
  using namespace AscendC;
  constexpr uint32_t kBlockElements = kBlockBytes / sizeof(T);
  const uint32_t row_blocks = (columns + kBlockElements - 1) / kBlockElements;
  fill_blocks(work, column, rows, where);
  PipeBarrier<PIPE_V>();
  if (columns % kBlockElements == 0) {
    spread_blocks(dst, work, rows, row_blocks, where);
    PipeBarrier<PIPE_V>();
    return;
  }
  const LocalTensor<T> padded = work[rows * kBlockElements];
  spread_blocks(padded, work, rows, row_blocks, where);
  PipeBarrier<PIPE_V>();
  constexpr uint8_t kEveryElement = 7;
  uint64_t picked = 0;
  GatherMask(dst, padded, kEveryElement, true, columns,
             GatherMaskParams(1, static_cast<uint16_t>(rows), static_cast<uint16_t>(row_blocks), 0), picked, where);
  PipeBarrier<PIPE_V>();
}

/// `rows` copies of one row, which is whole data blocks or the only one.
template <typename T>
inline void broadcast_row(const AscendC::LocalTensor<T>& dst, const AscendC::LocalTensor<T>& row, uint32_t rows,
                          uint32_t columns, Where where) {
  constexpr uint32_t kBlockElements = kBlockBytes / sizeof(T);
  constexpr uint32_t kRepeatElements = kBlocksPerRepeat * kBlockElements;
  const auto row_blocks = static_cast<uint16_t>((columns + kBlockElements - 1) / kBlockElements);
  for (uint32_t first = 0; first < columns; first += kRepeatElements) {
    const uint64_t count = std::min(columns - first, kRepeatElements);
    for (uint32_t done = 0; done < rows; done += UINT8_MAX) {
      AscendC::Copy(dst[done * columns + first], row[first], count,
                    static_cast<uint8_t>(std::min<uint32_t>(rows - done, UINT8_MAX)),
                    AscendC::CopyRepeatParams(1, 1, row_blocks, 0), where);
    }
  }
  AscendC::PipeBarrier<PIPE_V>();
}

/// The page of Broadcast lists the first four. With the others the public sample add_broadcast calls it, on A2 and A3.
template <typename T>
constexpr bool broadcasts =
    std::is_same_v<T, int8_t> || std::is_same_v<T, uint8_t> || std::is_same_v<T, half> || std::is_same_v<T, float> ||
    (kArchTraits.broadcasts_wide_types &&
     (std::is_same_v<T, bfloat16_t> || std::is_same_v<T, int16_t> || std::is_same_v<T, int32_t>));

template <typename T>
inline void broadcast_columns(const AscendC::LocalTensor<T>& dst, const AscendC::LocalTensor<T>& src, uint32_t rows,
                              uint32_t columns, const AscendC::LocalTensor<uint8_t>& space, Where where) {
  using namespace AscendC;
  constexpr uint32_t kUnit = broadcast_unit(sizeof(T));
  uint32_t part = std::min(kMostBroadcastRows, (rows + kUnit - 1) / kUnit * kUnit);
  while (part > kUnit && broadcast_column_bytes(part, columns, sizeof(T)) > space.GetSize()) part -= kUnit;
  if (part >= rows) part = rows;
  if (broadcast_column_bytes(part, columns, sizeof(T)) > space.GetSize()) {
    illegal_operand("Broadcast: its temporary space is smaller than GetBroadCastMaxMinTmpSize says", where);
  }
  for (uint32_t begin = 0; begin < rows; begin += part) {
    const uint32_t count = std::min(part, rows - begin);
    if constexpr (sizeof(T) == 1) {
      const LocalTensor<half> result = space.template ReinterpretCast<half>();
      const uint32_t elements = count * columns;
      const LocalTensor<half> column = result[(elements + 15) / 16 * 16];
      const LocalTensor<half> work = column[(count + 15) / 16 * 16];
      Cast(column, src[begin], RoundMode::CAST_NONE, count, where);
      PipeBarrier<PIPE_V>();
      broadcast_column(result, column, count, columns, work, where);
      Cast(dst[begin * columns], result, RoundMode::CAST_NONE, elements, where);
      PipeBarrier<PIPE_V>();
    } else {
      broadcast_column(dst[begin * columns], src[begin], count, columns, space.template ReinterpretCast<T>(), where);
    }
  }
}

template <typename T, int32_t dim, int32_t axis>
inline void broadcast(const AscendC::LocalTensor<T>& dst, const AscendC::LocalTensor<T>& src, const uint32_t* dst_shape,
                      const uint32_t* src_shape, const AscendC::LocalTensor<uint8_t>& space, Where where) {
  static_assert(dim == 1 || dim == 2, "Broadcast: dim is 1 or 2");
  static_assert(axis >= 0 && axis < dim, "Broadcast: axis is 0, or 1 with dim 2");
  static_assert(broadcasts<T>,
                "Broadcast: this data type is not supported on this chip: int8_t, uint8_t, half and float are, and on "
                "Ascend910B bfloat16_t, int16_t and int32_t");
  const uint32_t rows = dim == 1 ? 1 : dst_shape[0];
  const uint32_t columns = dst_shape[dim - 1];
  const bool is_one = src_shape[axis] == 1;
  if ((!is_one && src_shape[axis] != dst_shape[axis]) || (dim == 2 && src_shape[1 - axis] != dst_shape[1 - axis])) {
    illegal_operand("Broadcast: srcShape is neither dstShape nor 1 along the axis and dstShape along the other", where);
  }
  if (rows == 0 || columns == 0) return;
  if (!is_one || dst_shape[axis] == 1) {
    // Nothing grows: a copy of all.
    const uint32_t total_bytes = rows * columns * static_cast<uint32_t>(sizeof(T));
    AscendC::DataCopy(dst, src, (total_bytes + kBlockBytes - 1) / kBlockBytes * kBlockBytes / sizeof(T), where);
    AscendC::PipeBarrier<PIPE_V>();
  } else if constexpr (axis == dim - 1) {
    broadcast_columns(dst, src, rows, columns, space, where);
  } else {
    if (columns * sizeof(T) % kBlockBytes != 0) {
      illegal_operand("Broadcast: with axis 0 a row (srcShape[1]) is to be a multiple of 32 bytes", where);
    }
    if constexpr (sizeof(T) == 1) {
      broadcast_row(dst.template ReinterpretCast<half>(), src.template ReinterpretCast<half>(), rows, columns / 2,
                    where);
    } else {
      broadcast_row(dst, src, rows, columns, where);
    }
  }
}

}  // namespace opkit::high_level

namespace AscendC {

/// Fills dstLocal, of dstShape, with srcLocal, of srcShape: that is 1 along `axis`.
template <typename T, int32_t dim, int32_t axis, bool isReuseSource = false>
inline void Broadcast(const LocalTensor<T>& dstLocal, const LocalTensor<T>& srcLocal, const uint32_t dstShape[dim],
                      const uint32_t srcShape[dim], LocalTensor<uint8_t>& sharedTmpBuffer, OPKIT_HERE) {
  opkit::high_level::broadcast<T, dim, axis>(dstLocal, srcLocal, dstShape, srcShape, sharedTmpBuffer, where);
}
template <typename T, int32_t dim, int32_t axis, bool isReuseSource = false>
inline void Broadcast(const LocalTensor<T>& dstLocal, const LocalTensor<T>& srcLocal, const uint32_t dstShape[dim],
                      const uint32_t srcShape[dim], OPKIT_HERE) {
  opkit::high_level::broadcast<T, dim, axis>(dstLocal, srcLocal, dstShape, srcShape, opkit::high_level::free_space(),
                                             where);
}
template <typename T, int32_t dim, int32_t axis, bool isReuseSource = false>
inline void BroadCast(const LocalTensor<T>& dstLocal, const LocalTensor<T>& srcLocal, const uint32_t dstShape[dim],
                      const uint32_t srcShape[dim], LocalTensor<uint8_t>& sharedTmpBuffer, OPKIT_HERE) {
  Broadcast<T, dim, axis, isReuseSource>(dstLocal, srcLocal, dstShape, srcShape, sharedTmpBuffer, where);
}
template <typename T, int32_t dim, int32_t axis, bool isReuseSource = false>
inline void BroadCast(const LocalTensor<T>& dstLocal, const LocalTensor<T>& srcLocal, const uint32_t dstShape[dim],
                      const uint32_t srcShape[dim], OPKIT_HERE) {
  Broadcast<T, dim, axis, isReuseSource>(dstLocal, srcLocal, dstShape, srcShape, where);
}

}  // namespace AscendC
