// The largest or smallest element of each line and where it is (argmax, max over a dim), on the vector unit.
//
// Lines that lie side by side are reduced by WholeReduceMax, several a tile, or by ReduceMax, a line in parts; lines
// that cross rows are columns, which take row after row. Where there are fewer lines than cores, several cores share
// one, and the parts' extremes meet in `space`. NaN goes before all others; of equal elements the first counts.
#pragma once

#include "global_memory.h"
#include "kernel_operator.h"
#include "line_types.h"
#include "plans.h"

namespace opkit::kernels {

using namespace AscendC;

class Extremes {
 public:
  static constexpr uint32_t kLanes = 64;
  static constexpr uint32_t kTile = 8192;       // elements of a tile
  static constexpr uint32_t kMostLines = 248;   // of a tile: repeats of one instruction, a multiple of eight
  static constexpr uint32_t kMostLanes = 1024;  // of columns that an instruction takes, chains of rows side by side
  static constexpr uint32_t kSlot = 32;         // bytes that a part of a line leaves

  __aicore__ inline Extremes(GM_ADDR x, GM_ADDR values, GM_ADDR places, GM_ADDR space, const LinePlan& p)
      : x_(x), values_(values), places_(places), space_(space), p_(p), kind_(static_cast<Kind>(p.kind)) {
    element_ = line_bytes(kind_);
    is_least_ = p.is_descending == 0;
    pipe_.InitBuffer(queue_, 2, kTile * 4);
    pipe_.InitBuffer(floats_, kTile * 4);
    pipe_.InitBuffer(work_, kTile * 4);
    pipe_.InitBuffer(results_, 5 * kTile);
  }

  __aicore__ inline void run() {
    // What copies leave of a buffer is read with the rest of a repeat.
    for (uint32_t i = 0; i < 2; ++i) {
      const LocalTensor<float> raw = queue_.AllocTensor<float>();
      Duplicate(raw, 0.0f, kTile);
      queue_.EnQue(raw);
      queue_.FreeTensor(queue_.DeQue<float>());
    }
    if (p_.inner > 1) {
      columns();
    } else if (p_.parts > 1) {
      shared_lines();
    } else if (p_.length <= kLanes) {
      short_lines();
    } else {
      long_lines();
    }
  }

 private:
  /// A tile of the line's kind as floats, when it has come.
  __aicore__ inline void convert(uint32_t count) {
    const LocalTensor<uint8_t> raw = queue_.DeQue<uint8_t>();
    as_floats(kind_, floats_.Get<float>(), raw, work_.Get<half>(), count);
    queue_.FreeTensor(raw);
  }

  /// Elements of rows in global memory `step` apart, `pitch` apart in the buffer.
  __aicore__ inline void fetch(int64_t at, uint32_t rows, uint32_t count, int64_t step, uint32_t pitch) {
    const LocalTensor<uint8_t> raw = queue_.AllocTensor<uint8_t>();
    if (step == count && pitch == count) {
      count *= rows;
      rows = 1;
    }
    const uint32_t filled = (count * element_ + 31) / 32 * 32;
    uint32_t most = 0;
    if (rows > 1 && filled > count * element_ && filled <= step * element_) {
      // Whole blocks take less than a part of one: rows but the last bring what comes behind them.
      most = rows - 1;
      copy_in(raw, at, most, filled, step, pitch);
    }
    copy_in(raw[most * pitch * element_], at + most * step, rows - most, count * element_, step, pitch);
    queue_.EnQue(raw);
  }

  __aicore__ inline void copy_in(const LocalTensor<uint8_t>& to, int64_t at, uint32_t rows, uint32_t bytes,
                                 int64_t step, uint32_t pitch) {
    const uint32_t gap = rows > 1 ? static_cast<uint32_t>(step * element_) - bytes : 0;
    const uint32_t room = rows > 1 ? (pitch * element_ - (bytes + 31) / 32 * 32) / 32 : 0;
    DataCopyPad(to, global<uint8_t>(x_, at * element_),
                DataCopyExtParams(static_cast<uint16_t>(rows), bytes, gap, room, 0),
                DataCopyPadExtParams<uint8_t>(false, 0, 0, 0));
  }

  __aicore__ inline LocalTensor<float> extreme() { return results_.Get<float>(); }
  __aicore__ inline LocalTensor<int32_t> numbers() { return results_.Get<int32_t>()[kTile / 4]; }
  __aicore__ inline LocalTensor<int64_t> wide() { return results_.Get<int64_t>()[kTile / 4]; }

  /// Sends `count` extremes and places that lie side by side to where those of a line begin.
  __aicore__ inline void send(int64_t at, uint32_t count) {
    PipeBarrier<PIPE_V>();
    if (places_ != nullptr && p_.has_short_places == 0) {
      Cast(wide(), numbers(), RoundMode::CAST_NONE, count);
      PipeBarrier<PIPE_V>();
    }
    if (values_ != nullptr) from_floats(kind_, extreme(), work_.Get<half>(), count);
    SetFlag<HardEvent::V_MTE3>(EVENT_ID0);
    WaitFlag<HardEvent::V_MTE3>(EVENT_ID0);
    if (places_ != nullptr) {
      const uint32_t bytes = p_.has_short_places != 0 ? 4 : 8;
      const DataCopyExtParams shape(1, count * bytes, 0, 0, 0);
      const LocalTensor<uint8_t> from =
          bytes == 4 ? numbers().ReinterpretCast<uint8_t>() : wide().ReinterpretCast<uint8_t>();
      DataCopyPad(global<uint8_t>(places_, at * bytes), from, shape);
    }
    if (values_ != nullptr) {
      const DataCopyExtParams shape(1, count * element_, 0, 0, 0);
      DataCopyPad(global<uint8_t>(values_, at * element_), extreme().ReinterpretCast<uint8_t>(), shape);
    }
    SetFlag<HardEvent::MTE3_V>(EVENT_ID0);
    WaitFlag<HardEvent::MTE3_V>(EVENT_ID0);
  }

  /// Whole lines of one repeat at most, many a tile.
  __aicore__ inline void short_lines() {
    const auto length = static_cast<uint32_t>(p_.length);
    const uint32_t unit = 32 / element_;
    const uint32_t pitch = (length + unit - 1) / unit * unit;
    const uint32_t fitting = kTile / pitch / 8 * 8;
    const int64_t most = fitting < kMostLines ? fitting : kMostLines;
    const int64_t share = (p_.outer + GetBlockNum() - 1) / GetBlockNum();
    const int64_t tile = share < most ? (share + 7) / 8 * 8 : most;
    const int64_t tiles = (p_.outer + tile - 1) / tile;
    const auto rows_at = [&](int64_t i) {
      const int64_t left = p_.outer - i * tile;
      return static_cast<uint32_t>(left < tile ? left : tile);
    };
    const int64_t cores = GetBlockNum();
    int64_t ahead = GetBlockIdx();
    if (ahead < tiles) fetch(ahead * tile * length, rows_at(ahead), length, length, pitch);
    for (int64_t i = GetBlockIdx(); i < tiles; i += cores) {
      ahead = i + cores;
      if (ahead < tiles) fetch(ahead * tile * length, rows_at(ahead), length, length, pitch);
      const uint32_t rows = rows_at(i);
      convert(rows * pitch);
      const LocalTensor<float> from = floats_.Get<float>();
      const auto reduce = [&](const LocalTensor<float>& to, ReduceOrder order) {
        const auto repeats = static_cast<int32_t>(rows);
        const auto step = static_cast<int32_t>(pitch / 8);
        if (is_least_) {
          WholeReduceMin(to, from, static_cast<int32_t>(length), repeats, 1, 1, step, order);
        } else {
          WholeReduceMax(to, from, static_cast<int32_t>(length), repeats, 1, 1, step, order);
        }
      };
      if (places_ != nullptr) reduce(numbers().ReinterpretCast<float>(), ReduceOrder::ORDER_ONLY_INDEX);
      if (values_ != nullptr) reduce(extreme(), ReduceOrder::ORDER_ONLY_VALUE);
      send(i * tile, rows);
    }
  }

  /// The better of what was found and a part's extreme that follows it.
  __aicore__ inline void take(float value, int64_t place) {
    const bool is_first = place_ < 0;
    const bool is_better = value != value || (is_least_ ? value < value_ : value > value_);
    if (!is_first && (value_ != value_ || !is_better)) return;
    value_ = value;
    place_ = place;
  }

  /// The extreme of elements first to last of the line that begins at `at`; what follows comes ahead.
  __aicore__ inline void reduce_line(int64_t at, int64_t first, int64_t last) {
    place_ = -1;
    const auto count_at = [&](int64_t begin) {
      return static_cast<uint32_t>(last - begin < kTile ? last - begin : kTile);
    };
    fetch(at + first, 1, count_at(first), 0, kTile);
    for (int64_t begin = first; begin < last; begin += kTile) {
      const uint32_t count = count_at(begin);
      if (begin + kTile < last) fetch(at + begin + kTile, 1, count_at(begin + kTile), 0, kTile);
      convert(count);
      const LocalTensor<float> pair = extreme();
      reduce(pair, floats_.Get<float>(), work_.Get<float>(), count);
      wait_for_scalars();
      take(pair.GetValue(0), begin + pair.ReinterpretCast<int32_t>().GetValue(1));
      release_scalars();
    }
  }

  __aicore__ inline void begin_results() {
    const LocalTensor<uint8_t> out = results_.Get<uint8_t>()[kTile];
    values_out_ = Outbox(out, values_);
    places_out_ = Outbox(out[Outbox::kBytes], places_);
  }

  __aicore__ inline void put_result(int64_t line) {
    if (places_ != nullptr) {
      if (p_.has_short_places != 0) {
        places_out_.put(line, static_cast<int32_t>(place_));
      } else {
        places_out_.put(line, place_);
      }
    }
    if (values_ == nullptr) return;
    const int64_t at = line * p_.length + place_;
    switch (element_) {
      case 4: values_out_.put(line, global<int32_t>(x_, at).GetValue(0)); break;
      case 2: values_out_.put(line, global<int16_t>(x_, at).GetValue(0)); break;
      default: values_out_.put(line, global<uint8_t>(x_, at).GetValue(0)); break;
    }
  }

  __aicore__ inline void end_results() {
    values_out_.flush();
    places_out_.flush();
  }

  __aicore__ inline void long_lines() {
    begin_results();
    const int64_t cores = GetBlockNum();
    const int64_t begin = p_.outer * GetBlockIdx() / cores;
    const int64_t end = p_.outer * (GetBlockIdx() + 1) / cores;
    const int64_t pitch = (p_.length + 31) / 32 * 32;
    if (2 * pitch <= kTile) {
      lines_together(begin, end, static_cast<uint32_t>(pitch));
    } else {
      for (int64_t line = begin; line < end; ++line) {
        reduce_line(line * p_.length, 0, p_.length);
        put_result(line);
      }
    }
    end_results();
  }

  /// Several lines a tile, an instruction for each, whose results are read together.
  __aicore__ inline void lines_together(int64_t begin, int64_t end, uint32_t pitch) {
    const int64_t most = kTile / pitch;
    const auto length = static_cast<uint32_t>(p_.length);
    const auto rows_at = [&](int64_t line) { return static_cast<uint32_t>(end - line < most ? end - line : most); };
    if (begin < end) fetch(begin * length, rows_at(begin), length, length, pitch);
    for (int64_t line = begin; line < end; line += most) {
      const uint32_t rows = rows_at(line);
      const int64_t ahead = line + most;
      if (ahead < end) fetch(ahead * length, rows_at(ahead), length, length, pitch);
      convert(rows * pitch);
      const LocalTensor<float> pairs = extreme();
      for (uint32_t i = 0; i < rows; ++i) {
        const LocalTensor<float> from = floats_.Get<float>()[i * pitch];
        const LocalTensor<float> room = work_.Get<float>()[i * 128];
        reduce(pairs[8 * i], from, room, length);
      }
      wait_for_scalars();
      for (uint32_t i = 0; i < rows; ++i) {
        place_ = pairs.ReinterpretCast<int32_t>().GetValue(8 * i + 1);
        put_result(line + i);
      }
      release_scalars();
    }
  }

  /// The extreme and its place as bits, one behind the other.
  __aicore__ inline void reduce(const LocalTensor<float>& pair, const LocalTensor<float>& from,
                                const LocalTensor<float>& room, uint32_t count) {
    if (is_least_) {
      ReduceMin(pair, from, room, static_cast<int32_t>(count), true);
    } else {
      ReduceMax(pair, from, room, static_cast<int32_t>(count), true);
    }
  }

  __aicore__ inline void wait_for_scalars() {
    SetFlag<HardEvent::V_S>(EVENT_ID0);
    WaitFlag<HardEvent::V_S>(EVENT_ID0);
  }

  __aicore__ inline void release_scalars() {
    SetFlag<HardEvent::S_V>(EVENT_ID0);
    WaitFlag<HardEvent::S_V>(EVENT_ID0);
  }

  /// Each core one part of a line; then a core for each line looks at what its parts have left.
  __aicore__ inline void shared_lines() {
    const int64_t part = GetBlockIdx() % p_.parts;
    const int64_t line = GetBlockIdx() / p_.parts;
    const int64_t unit = (p_.length + p_.parts - 1) / p_.parts;
    const LocalTensor<float> slot = results_.Get<float>()[kTile / 4];
    if (line < p_.outer) {
      const int64_t first = unit * part < p_.length ? unit * part : p_.length - 1;
      const int64_t last = first + unit < p_.length ? first + unit : p_.length;
      reduce_line(line * p_.length, first, last);
      slot.SetValue(0, value_);
      slot.SetValue(1, 0.0f);
      slot.ReinterpretCast<int64_t>().SetValue(1, place_);
      SetFlag<HardEvent::S_MTE3>(EVENT_ID0);
      WaitFlag<HardEvent::S_MTE3>(EVENT_ID0);
      const DataCopyExtParams shape(1, 16, 0, 0, 0);
      DataCopyPad(global<uint8_t>(space_, GetBlockIdx() * kSlot), slot.ReinterpretCast<uint8_t>(), shape);
    }
    SyncAll();
    if (part != 0 || line >= p_.outer) return;
    place_ = -1;
    const DataCopyExtParams shape(static_cast<uint16_t>(p_.parts), 16, kSlot - 16, 0, 0);
    DataCopyPad(slot.ReinterpretCast<uint8_t>(), global<uint8_t>(space_, GetBlockIdx() * kSlot), shape,
                DataCopyPadExtParams<uint8_t>(false, 0, 0, 0));
    SetFlag<HardEvent::MTE2_S>(EVENT_ID0);
    WaitFlag<HardEvent::MTE2_S>(EVENT_ID0);
    for (uint32_t i = 0; i < p_.parts; ++i) {
      take(slot.GetValue(i * 8), slot.ReinterpretCast<int64_t>().GetValue(i * 4 + 1));
    }
    PipeBarrier<PIPE_ALL>();
    begin_results();
    put_result(line);
    end_results();
  }

  /// Blocks of columns, from top to bottom.
  __aicore__ inline void columns() {
    const int64_t cores = GetBlockNum();
    int64_t width = p_.width;
    const int64_t blocks = (p_.inner + width - 1) / width;
    const auto pitch = static_cast<uint32_t>((width + kLanes - 1) / kLanes * kLanes);
    const int64_t fitting = kMostLanes / pitch;
    const auto chains = static_cast<uint32_t>(p_.length < fitting ? p_.length : fitting);
    for (int64_t unit = GetBlockIdx(); unit < p_.outer * blocks; unit += cores) {
      const int64_t outer = unit / blocks;
      const int64_t column = unit % blocks * width;
      const auto count = static_cast<uint32_t>(p_.inner - column < width ? p_.inner - column : width);
      reduce_columns(outer, column, count, pitch, chains, false);
      if (has_nan(pitch)) reduce_columns(outer, column, count, pitch, chains, true);
      send(outer * p_.inner + column, count);
    }
  }

  /// Whether an extreme of the columns is none: comparisons have left no place then.
  __aicore__ inline bool has_nan(uint32_t pitch) {
    if (kind_ != Kind::F32 && kind_ != Kind::F16 && kind_ != Kind::BF16) return false;
    const LocalTensor<float> pair = results_.Get<float>()[kTile / 2];
    ReduceMax(pair, extreme(), work_.Get<float>(), static_cast<int32_t>(pitch), true);
    wait_for_scalars();
    const float most = pair.GetValue(0);
    release_scalars();
    return most != most;
  }

  /// Rows that follow each other are so many chains side by side: an instruction takes as many lanes as pay for its
  /// start. Then the chains' extremes meet.
  __aicore__ inline void reduce_columns(int64_t outer, int64_t column, uint32_t count, uint32_t pitch, uint32_t chains,
                                        bool of_nan) {
    const int64_t most_rows = kTile / pitch / chains * chains;
    const int64_t first = outer * p_.length * p_.inner + column;
    const auto rows_at = [&](int64_t row) {
      const int64_t left = p_.length - row;
      return static_cast<uint32_t>(left < most_rows ? left : most_rows);
    };
    fetch(first, rows_at(0), count, p_.inner, pitch);
    for (int64_t row = 0; row < p_.length; row += most_rows) {
      const uint32_t rows = rows_at(row);
      const int64_t ahead = row + most_rows;
      if (ahead < p_.length) fetch(first + ahead * p_.inner, rows_at(ahead), count, p_.inner, pitch);
      convert(rows * pitch);
      for (uint32_t i = 0; i < rows; i += chains) {
        const uint32_t lanes = (rows - i < chains ? rows - i : chains) * pitch;
        if (of_nan) {
          take_nan(floats_.Get<float>()[i * pitch], row + i, lanes);
        } else {
          take_rows(floats_.Get<float>()[i * pitch], row + i, lanes);
        }
      }
    }
    if (of_nan) {
      join_nan(pitch, chains);
    } else {
      join_rows(pitch, chains);
    }
  }

  /// Numbers up to 2^24 are whole as floats too; Select has no int32.
  __aicore__ inline LocalTensor<float> found() { return numbers().ReinterpretCast<float>(); }
  __aicore__ inline LocalTensor<uint8_t> bits() { return results_.Get<uint8_t>()[3 * kTile]; }
  __aicore__ inline LocalTensor<float> nan_places() { return work_.Get<float>()[kMostLanes]; }

  __aicore__ inline void take_rows(const LocalTensor<float>& line, int64_t row, uint32_t lanes) {
    const LocalTensor<float> best = extreme();
    if (row == 0) {
      DataCopy(best, line, lanes);
      Duplicate(found(), 0.0f, lanes);
      PipeBarrier<PIPE_V>();
      return;
    }
    Compare(bits(), line, best, is_least_ ? CMPMODE::GE : CMPMODE::LE, lanes);
    PipeBarrier<PIPE_V>();
    Select(found(), bits(), found(), static_cast<float>(row), SELMODE::VSEL_TENSOR_SCALAR_MODE, lanes);
    better(best, line, lanes);
    PipeBarrier<PIPE_V>();
  }

  __aicore__ inline void better(const LocalTensor<float>& best, const LocalTensor<float>& other, uint32_t lanes) {
    if (is_least_) {
      Min(best, best, other, lanes);
    } else {
      Max(best, best, other, lanes);
    }
  }

  /// From the first NaN on a column's place stays: the least of the places of NaN, and of none.
  __aicore__ inline void take_nan(const LocalTensor<float>& line, int64_t row, uint32_t lanes) {
    const LocalTensor<float> other = work_.Get<float>();
    if (row == 0) Duplicate(nan_places(), kNone, lanes);
    Duplicate(other, kNone, lanes);
    Compare(bits(), line, line, CMPMODE::EQ, lanes);
    PipeBarrier<PIPE_V>();
    Select(other, bits(), other, static_cast<float>(row), SELMODE::VSEL_TENSOR_SCALAR_MODE, lanes);
    PipeBarrier<PIPE_V>();
    Min(nan_places(), nan_places(), other, lanes);
    PipeBarrier<PIPE_V>();
  }

  /// Of equal extremes the first counts.
  __aicore__ inline void join_rows(uint32_t pitch, uint32_t chains) {
    const LocalTensor<float> best = extreme(), number = found(), first = work_.Get<float>(), its = first[kMostLanes];
    for (uint32_t chain = 1; chain < chains; ++chain) {
      const LocalTensor<float> other = best[chain * pitch];
      Adds(its, number[chain * pitch], static_cast<float>(chain), pitch);
      Compare(bits(), other, best, is_least_ ? CMPMODE::LT : CMPMODE::GT, pitch);
      PipeBarrier<PIPE_V>();
      Min(first, its, number, pitch);
      Select(number, bits(), its, number, SELMODE::VSEL_TENSOR_TENSOR_MODE, pitch);
      PipeBarrier<PIPE_V>();
      Compare(bits(), other, best, CMPMODE::EQ, pitch);
      PipeBarrier<PIPE_V>();
      Select(number, bits(), first, number, SELMODE::VSEL_TENSOR_TENSOR_MODE, pitch);
      better(best, other, pitch);
      PipeBarrier<PIPE_V>();
    }
    Cast(numbers(), number, RoundMode::CAST_RINT, pitch);
    PipeBarrier<PIPE_V>();
  }

  __aicore__ inline void join_nan(uint32_t pitch, uint32_t chains) {
    const LocalTensor<float> number = found(), none = work_.Get<float>(), places = nan_places();
    for (uint32_t chain = 1; chain < chains; ++chain) {
      Adds(places[chain * pitch], places[chain * pitch], static_cast<float>(chain), pitch);
      PipeBarrier<PIPE_V>();
      Min(places, places, places[chain * pitch], pitch);
      PipeBarrier<PIPE_V>();
    }
    Duplicate(none, kNone, pitch);
    Cast(number, numbers(), RoundMode::CAST_RINT, pitch);
    PipeBarrier<PIPE_V>();
    Compare(bits(), places, none, CMPMODE::EQ, pitch);
    PipeBarrier<PIPE_V>();
    Select(number, bits(), number, places, SELMODE::VSEL_TENSOR_TENSOR_MODE, pitch);
    PipeBarrier<PIPE_V>();
    Cast(numbers(), number, RoundMode::CAST_RINT, pitch);
    PipeBarrier<PIPE_V>();
  }

  static constexpr float kNone = 3.0e38f;

  GM_ADDR x_;
  GM_ADDR values_;
  GM_ADDR places_;
  GM_ADDR space_;
  const LinePlan& p_;
  Kind kind_;
  uint32_t element_;
  bool is_least_;
  float value_ = 0;
  int64_t place_ = -1;
  TPipe pipe_;
  TQue<TPosition::VECIN, 2> queue_;
  TBuf<TPosition::VECCALC> floats_;
  TBuf<TPosition::VECCALC> work_;
  TBuf<TPosition::VECCALC> results_;
  Outbox values_out_{LocalTensor<uint8_t>(), nullptr};
  Outbox places_out_{LocalTensor<uint8_t>(), nullptr};
};

}  // namespace opkit::kernels
