// Elements picked from blocks of a table that fit the unified buffer, or put there: places are numbers along an axis,
// of which a core has all for some columns. What is picked goes through Gather. What is put goes by a mask for each of
// few places; to many, and what is added, is the scalar unit's. Either way in order: each core has its own columns.
#pragma once

#include "global_memory.h"
#include "kernel_operator.h"
#include "plans.h"

namespace opkit::kernels {

using namespace AscendC;

class IndexedBlocks {
 public:
  static constexpr uint32_t kTile = 2048;  ///< numbers of a tile

  __aicore__ inline IndexedBlocks(GM_ADDR table, GM_ADDR plain, GM_ADDR index, const ElementsPlan& plan)
      : table_(table), plain_(plain), index_(index), p_(plan) {
    pipe_.InitBuffer(block_, kBlockBytes);
    pipe_.InitBuffer(raw_, kTile * 8);
    pipe_.InitBuffer(offsets_, kTile * 4);
    pipe_.InitBuffer(lanes_, kTile * 4);
    pipe_.InitBuffer(limits_, 2 * kTile * 4);
    pipe_.InitBuffer(moved_, kTile * 8);
    pipe_.InitBuffer(masks_, kMasksAtOnce * kMaskBytes);
    // Columns: dim 0 is theirs and dim 1 that of the numbers; a line: dim 0 is that of the numbers.
    is_line_ = p_.table_strides[0] == 0;
    columns_ = is_line_ ? 1 : p_.sizes[0];
    count_ = is_line_ ? p_.sizes[0] : p_.sizes[1];
    first_dim_ = is_line_ ? 1 : 2;
    plain_step_ = is_line_ ? 1 : p_.plain_strides[1];
    index_step_ = is_line_ ? 1 : p_.indices[0].strides[1];
    // Comparisons take whole repeats; Select moves elements of 16 and of 32 bits.
    is_by_masks_ = p_.action == ElementsPlan::kPut && !is_line_ && p_.width % 64 == 0 &&
                   p_.indices[0].size <= kMostMasks && (p_.element_bytes == 2 || p_.element_bytes == 4);
  }

  /// Units are given out in turn. Returns whether all numbers were places of the table.
  __aicore__ inline bool run() {
    Duplicate(raw_.Get<int32_t>(), 0, 2 * kTile);
    if (is_by_masks_) {
      // Lanes between the rows are moved with the others.
      Duplicate(block_.Get<int32_t>(), 0, kBlockBytes / 4);
      Duplicate(moved_.Get<int32_t>(), 0, kTile);
    }
    const int64_t blocks = (columns_ + p_.width - 1) / p_.width;
    int64_t units = blocks;
    for (uint32_t d = first_dim_; d < kCopyDims; ++d) units *= p_.sizes[d];
    const uint32_t lanes = kTile / p_.width * p_.width;
    for (uint32_t row = 0; !is_line_ && row < kTile / p_.width; ++row) {
      CreateVecIndex(lanes_.Get<int32_t>()[row * p_.width], 0, p_.width);
    }
    PipeBarrier<PIPE_V>();
    if (!is_line_) Muls(lanes_.Get<int32_t>(), lanes_.Get<int32_t>(), static_cast<int32_t>(p_.element_bytes), lanes);
    PipeBarrier<PIPE_ALL>();
    for (int64_t unit = GetBlockIdx(); unit < units; unit += GetBlockNum()) {
      const int64_t column = unit % blocks * p_.width;
      int64_t rest = unit / blocks, plain = column, table = p_.table_offset + column, index = is_line_ ? 0 : column;
      for (uint32_t d = first_dim_; d < kCopyDims; ++d) {
        const int64_t i = rest % p_.sizes[d];
        rest /= p_.sizes[d];
        plain += i * p_.plain_strides[d];
        table += i * p_.table_strides[d];
        index += i * p_.indices[0].strides[d];
      }
      const auto width = static_cast<uint32_t>(columns_ - column < p_.width ? columns_ - column : p_.width);
      if (!move(table, plain, index, width)) return false;
    }
    return true;
  }

 private:
  /// Rows of the table in the buffer lie `width` of the plan apart; a line is one row.
  __aicore__ inline void copy_block(int64_t table, uint32_t width, bool is_out) {
    const uint32_t size = p_.element_bytes;
    const int64_t rows = is_line_ ? 1 : p_.indices[0].size;
    const uint32_t bytes = is_line_ ? static_cast<uint32_t>(p_.indices[0].size) * size : width * size;
    const auto gap = static_cast<uint32_t>(p_.indices[0].table_stride * size - bytes);
    const uint32_t room = (p_.width * size - (bytes + 31) / 32 * 32) / 32 * !is_line_;
    constexpr int64_t kMostRows = 4095;
    for (int64_t row = 0; row < rows; row += kMostRows) {
      const auto count = static_cast<uint16_t>(rows - row < kMostRows ? rows - row : kMostRows);
      const LocalTensor<uint8_t> local = block_.Get<uint8_t>()[row * p_.width * size];
      const GlobalTensor<uint8_t> there = global<uint8_t>(table_, (table + row * p_.indices[0].table_stride) * size);
      if (is_out) {
        DataCopyPad(there, local, DataCopyExtParams(count, bytes, room, count > 1 ? gap : 0, 0));
      } else {
        // What lies behind a row of a table that is put into is another core's.
        if (p_.action == ElementsPlan::kGather) {
          copy_in(local, there, count, bytes, p_.indices[0].table_stride * size, p_.width * size);
        } else {
          copy_part(local, there, count, bytes, p_.indices[0].table_stride * size, p_.width * size);
        }
      }
    }
  }

  /// Rows of numbers, or of elements beside them, `width` of the plan apart.
  __aicore__ inline void copy_rows(const LocalTensor<uint8_t>& to, GM_ADDR from, int64_t at, int64_t step,
                                   uint32_t rows, uint32_t width, uint32_t size) {
    copy_in(to, global<uint8_t>(from, at * size), rows, width * size, step * size, p_.width * size);
  }

  /// Rows that lie `step` bytes apart there and `pitch` here. Whole blocks take less than a part of one: rows but the
  /// last bring what comes behind them.
  __aicore__ inline void copy_in(const LocalTensor<uint8_t>& to, const GlobalTensor<uint8_t>& from, uint32_t rows,
                                 uint32_t bytes, int64_t step, uint32_t pitch) {
    const uint32_t filled = (bytes + 31) / 32 * 32;
    uint32_t most = 0;
    if (rows > 1 && filled > bytes && filled <= step && pitch % 32 == 0) {
      most = rows - 1;
      copy_part(to, from, most, filled, step, pitch);
    }
    copy_part(to[most * pitch], from[most * step], rows - most, bytes, step, pitch);
  }

  __aicore__ inline void copy_part(const LocalTensor<uint8_t>& to, const GlobalTensor<uint8_t>& from, uint32_t rows,
                                   uint32_t bytes, int64_t step, uint32_t pitch) {
    const uint32_t room = rows > 1 ? (pitch - (bytes + 31) / 32 * 32) / 32 : 0;
    const uint32_t gap = rows > 1 ? static_cast<uint32_t>(step - bytes) : 0;
    DataCopyPad(to, from, DataCopyExtParams(static_cast<uint16_t>(rows), bytes, gap, room, 0),
                DataCopyPadExtParams<uint8_t>(bytes % 32 != 0, 0, static_cast<uint8_t>((32 - bytes % 32) % 32), 0));
  }

  __aicore__ inline bool move(int64_t table, int64_t plain, int64_t index, uint32_t width) {
    const bool is_gather = p_.action == ElementsPlan::kGather;
    copy_block(table, width, false);
    Duplicate(limits_.Get<int32_t>(), 0, 2 * kTile);
    const uint32_t together = is_line_ ? kTile : kTile / p_.width;  // numbers of a line, or rows of them
    for (int64_t row = 0; row < count_; row += together) {
      const auto rows = static_cast<uint32_t>(count_ - row < together ? count_ - row : together);
      const uint32_t lines = is_line_ ? 1 : rows, across = is_line_ ? rows : width;
      const uint32_t lanes = is_line_ ? (rows + 7) / 8 * 8 : rows * p_.width;
      PipeBarrier<PIPE_ALL>();
      copy_rows(raw_.Get<uint8_t>(), index_, index + row * index_step_, index_step_, lines, across, p_.index_bytes);
      if (!is_gather) {
        copy_rows(moved_.Get<uint8_t>(), plain_, plain + row * plain_step_, plain_step_, lines, across,
                  p_.element_bytes);
      }
      PipeBarrier<PIPE_ALL>();
      number(lanes);
      if (is_by_masks_) {
        put_by_masks(rows);
        continue;
      }
      if (!is_gather) {
        PipeBarrier<PIPE_ALL>();
        if (!put_rows(lines, across)) return false;
        continue;
      }
      const LocalTensor<int32_t> offsets = offsets_.Get<int32_t>();
      Muls(offsets, offsets, static_cast<int32_t>((is_line_ ? 1 : p_.width) * p_.element_bytes), lanes);
      PipeBarrier<PIPE_V>();
      if (!is_line_) {
        Add(offsets, offsets, lanes_.Get<int32_t>(), lanes);
        PipeBarrier<PIPE_V>();
      }
      if (p_.element_bytes == 2) {
        Gather(moved_.Get<half>(), block_.Get<half>(), offsets.ReinterpretCast<uint32_t>(), 0, lanes);
      } else {
        Gather(moved_.Get<float>(), block_.Get<float>(), offsets.ReinterpretCast<uint32_t>(), 0, lanes);
      }
      PipeBarrier<PIPE_ALL>();
      const uint32_t bytes = across * p_.element_bytes;
      const uint32_t room = lines > 1 ? (p_.width * p_.element_bytes - (bytes + 31) / 32 * 32) / 32 : 0;
      const auto gap = static_cast<uint32_t>((plain_step_ - across) * p_.element_bytes);
      DataCopyPad(global<uint8_t>(plain_, (plain + row * plain_step_) * p_.element_bytes), moved_.Get<uint8_t>(),
                  DataCopyExtParams(static_cast<uint16_t>(lines), bytes, room, lines > 1 ? gap : 0, 0));
    }
    PipeBarrier<PIPE_ALL>();
    if (is_gather) return is_within();
    if (is_by_masks_ && !is_within()) return false;
    copy_block(table, width, true);
    PipeBarrier<PIPE_ALL>();
    return true;
  }

  /// Numbers as int32. Of those that pick, one below zero counts from the end; the scalar unit looks at others itself.
  __aicore__ inline void number(uint32_t lanes) {
    const LocalTensor<int32_t> to = offsets_.Get<int32_t>(), negative = moved_.Get<int32_t>()[kTile];
    if (p_.index_bytes == 8) {
      Cast(to, raw_.Get<int64_t>(), RoundMode::CAST_NONE, lanes);
    } else {
      DataCopy(to, raw_.Get<int32_t>(), (lanes + 7) / 8 * 8);
    }
    PipeBarrier<PIPE_V>();
    if (p_.action != ElementsPlan::kGather && !is_by_masks_) return;
    ShiftRight(negative, to, 31, lanes);
    PipeBarrier<PIPE_V>();
    Muls(negative, negative, static_cast<int32_t>(-p_.indices[0].size), lanes);
    PipeBarrier<PIPE_V>();
    Add(to, to, negative, lanes);
    PipeBarrier<PIPE_V>();
    const LocalTensor<int32_t> most = limits_.Get<int32_t>(), least = most[kTile];
    Max(most, most, to, lanes);
    Min(least, least, to, lanes);
    PipeBarrier<PIPE_V>();
  }

  /// Whether no number so far was beyond the table.
  __aicore__ inline bool is_within() {
    const LocalTensor<float> as_float = offsets_.Get<float>(), found = room_of_limits();
    const LocalTensor<int32_t> limits = limits_.Get<int32_t>();
    float ends[2];
    for (uint32_t i = 0; i < 2; ++i) {
      Cast(as_float, limits[i * kTile], RoundMode::CAST_RINT, kTile);
      PipeBarrier<PIPE_V>();
      if (i == 0) {
        ReduceMax(found, as_float, found[64], static_cast<int32_t>(kTile));
      } else {
        ReduceMin(found, as_float, found[64], static_cast<int32_t>(kTile));
      }
      PipeBarrier<PIPE_ALL>();
      ends[i] = found.GetValue(0);
      PipeBarrier<PIPE_ALL>();
    }
    return ends[0] < static_cast<float>(p_.indices[0].size) && ends[1] >= 0;
  }

  __aicore__ inline LocalTensor<float> room_of_limits() { return moved_.Get<float>(); }

  /// Rows of elements one after the other, each to every place by the mask of the numbers that name it.
  __aicore__ inline void put_by_masks(uint32_t rows) {
    const LocalTensor<float> numbers = lanes_.Get<float>();
    Cast(numbers, offsets_.Get<int32_t>(), RoundMode::CAST_RINT, rows * p_.width);
    PipeBarrier<PIPE_V>();
    const auto places = static_cast<uint32_t>(p_.indices[0].size);
    for (uint32_t row = 0; row < rows; ++row) {
      for (uint32_t first = 0; first < places; first += kMasksAtOnce) {
        const uint32_t some = places - first < kMasksAtOnce ? places - first : kMasksAtOnce;
        for (uint32_t i = 0; i < some; ++i) {
          CompareScalar(masks_.Get<uint8_t>()[i * kMaskBytes], numbers[row * p_.width], static_cast<float>(first + i),
                        CMPMODE::EQ, p_.width);
        }
        PipeBarrier<PIPE_V>();
        for (uint32_t i = 0; i < some; ++i) {
          if (p_.element_bytes == 2) {
            put_row<half>(row, first + i, masks_.Get<uint8_t>()[i * kMaskBytes]);
          } else {
            put_row<float>(row, first + i, masks_.Get<uint8_t>()[i * kMaskBytes]);
          }
        }
        PipeBarrier<PIPE_V>();
      }
    }
  }

  template <typename T>
  __aicore__ inline void put_row(uint32_t row, uint32_t place, const LocalTensor<uint8_t>& mask) {
    const LocalTensor<T> to = block_.Get<T>()[place * p_.width];
    Select(to, mask, moved_.Get<T>()[row * p_.width], to, SELMODE::VSEL_TENSOR_TENSOR_MODE, p_.width);
  }

  /// Elements to their places in the block, or added there, one after the other.
  __aicore__ inline bool put_rows(uint32_t rows, uint32_t width) {
    const auto add_half = [](half a, half b) {
      return static_cast<half>(static_cast<float>(a) + static_cast<float>(b));
    };
    const auto add_brain = [](bfloat16_t a, bfloat16_t b) { return ToBfloat16(ToFloat(a) + ToFloat(b)); };
    switch (p_.action == ElementsPlan::kAdd ? kAdds + p_.kind : p_.element_bytes) {
      case 8: return put<uint64_t>(rows, width);
      case 4: return put<uint32_t>(rows, width);
      case 2: return put<uint16_t>(rows, width);
      case 1: return put<uint8_t>(rows, width);
      case kAdds + static_cast<uint32_t>(Kind::F32):
        return add<float>(rows, width, [](float a, float b) { return a + b; });
      case kAdds + static_cast<uint32_t>(Kind::F16): return add<half>(rows, width, add_half);
      default: return add<bfloat16_t>(rows, width, add_brain);
    }
  }

  /// Where a number's element lies in the block; -1 for one beyond the table.
  __aicore__ inline int64_t at(int32_t number, uint32_t column) const {
    const int64_t place = number < 0 ? number + p_.indices[0].size : number;
    if (place < 0 || place >= p_.indices[0].size) return -1;
    return is_line_ ? place : place * p_.width + column;
  }

  /// The scalar unit reads eight bytes at once: two numbers, and some elements.
  template <typename T>
  __aicore__ inline bool put(uint32_t rows, uint32_t width) {
    constexpr uint32_t kTogether = 8 / sizeof(T);
    const LocalTensor<T> block = block_.Get<T>();
    const LocalTensor<uint64_t> numbers = offsets_.Get<uint64_t>(), moved = moved_.Get<uint64_t>();
    for (uint32_t row = 0; row < rows; ++row) {
      uint64_t pair = 0, values = 0;
      for (uint32_t i = 0; i < width; ++i) {
        const uint32_t from = row * p_.width + i;
        if (i % 2 == 0) pair = numbers.GetValue(from / 2);
        if (i % kTogether == 0) values = moved.GetValue(from / kTogether);
        const int64_t to = at(static_cast<int32_t>(i % 2 == 0 ? pair : pair >> 32), i);
        if (to < 0) return false;
        block.SetValue(static_cast<uint32_t>(to), static_cast<T>(values >> 8 * sizeof(T) * (i % kTogether)));
      }
    }
    return true;
  }

  template <typename T, typename Join>
  __aicore__ inline bool add(uint32_t rows, uint32_t width, const Join& join) {
    const LocalTensor<T> block = block_.Get<T>(), moved = moved_.Get<T>();
    const LocalTensor<int32_t> numbers = offsets_.Get<int32_t>();
    for (uint32_t row = 0; row < rows; ++row) {
      for (uint32_t i = 0; i < width; ++i) {
        const uint32_t from = row * p_.width + i;
        const int64_t to = at(numbers.GetValue(from), i);
        if (to < 0) return false;
        const auto place = static_cast<uint32_t>(to);
        block.SetValue(place, join(block.GetValue(place), moved.GetValue(from)));
      }
    }
    return true;
  }

  static constexpr uint32_t kAdds = 16;
  static constexpr uint32_t kMasksAtOnce = 8;  ///< so that none waits for the one before
  static constexpr uint32_t kMaskBytes = 256;  ///< bits of a row of kTile elements

  GM_ADDR table_;
  GM_ADDR plain_;
  GM_ADDR index_;
  const ElementsPlan& p_;
  bool is_line_;
  bool is_by_masks_;
  int64_t columns_;
  int64_t count_;
  uint32_t first_dim_;
  int64_t plain_step_;
  int64_t index_step_;
  TPipe pipe_;
  TBuf<TPosition::VECCALC> block_;
  TBuf<TPosition::VECCALC> raw_;
  TBuf<TPosition::VECCALC> offsets_;
  TBuf<TPosition::VECCALC> lanes_;
  TBuf<TPosition::VECCALC> limits_;
  TBuf<TPosition::VECCALC> moved_;
  TBuf<TPosition::VECCALC> masks_;
};

}  // namespace opkit::kernels
