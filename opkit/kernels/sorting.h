// Lines that lie side by side, sorted by the vector unit: Sort32 makes runs of 32 pairs of a key and a place, MrgSort
// makes four runs one. Keys are floats, so that the largest come first; for an ascending order they are negative.
#pragma once

#include "global_memory.h"
#include "kernel_operator.h"
#include "line_types.h"
#include "plans.h"

namespace opkit::kernels {

using namespace AscendC;

class LineSorter {
 public:
  static constexpr uint32_t kTile = 8192;  ///< elements of a tile, and of the longest line
  static constexpr uint32_t kRun = 32;     ///< pairs that Sort32 leaves in order

  __aicore__ inline LineSorter(GM_ADDR x, GM_ADDR values, GM_ADDR places, const LinePlan& p)
      : x_(x), values_(values), places_(places), p_(p), kind_(static_cast<Kind>(p.kind)) {
    element_ = line_bytes(kind_);
    length_ = static_cast<uint32_t>(p.length);
    kept_ = static_cast<uint32_t>(p.kept);
    // Whole groups of four runs: the first merge takes those of all lines at once.
    pitch_ = length_ <= kRun ? kRun : (length_ + 4 * kRun - 1) / (4 * kRun) * (4 * kRun);
    kept_pitch_ = (kept_ + kRun - 1) / kRun * kRun;
    pipe_.InitBuffer(first_, kTile * 8);
    pipe_.InitBuffer(second_, kTile * 8);
    pipe_.InitBuffer(keys_, kTile * 4);
    pipe_.InitBuffer(bits_, kTile / 8);
  }

  /// Sorts this core's lines. Returns how many of its last ones are left to the scalar unit, from the first on that has
  /// NaN, infinity and the largest float, of which two would be one key.
  __aicore__ inline int64_t run(int64_t begin, int64_t end) {
    const int64_t most = kTile / pitch_;
    for (int64_t line = begin; line < end; line += most) {
      const auto lines = static_cast<uint32_t>(end - line < most ? end - line : most);
      if (!load(line, lines)) return end - line;
      sort(lines);
      store(line, lines);
    }
    return 0;
  }

 private:
  static constexpr float kLargest = 3.4028234663852886e38f;

  static __aicore__ inline bool is_nan(float value) { return value != value; }
  __aicore__ inline LocalTensor<float> keys() { return keys_.Get<float>(); }

  /// Keys of lines `pitch_` apart, of what has no element the least.
  __aicore__ inline bool load(int64_t line, uint32_t lines) {
    const LocalTensor<uint8_t> raw = second_.Get<uint8_t>();
    const LocalTensor<half> room = second_.Get<half>()[2 * kTile];
    const uint32_t count = (lines * pitch_ + 63) / 64 * 64, bytes = length_ * element_, filled = (bytes + 31) / 32 * 32;
    // The rest of a line, and of a repeat, has been written too.
    if (lines * length_ < count) Duplicate(raw.ReinterpretCast<int32_t>(), 0, count * element_ / 4);
    PipeBarrier<PIPE_ALL>();
    DataCopyPad(raw, global<uint8_t>(x_, line * p_.length * element_),
                DataCopyExtParams(static_cast<uint16_t>(lines), bytes, 0, (pitch_ * element_ - filled) / 32, 0),
                DataCopyPadExtParams<uint8_t>(false, 0, 0, 0));
    PipeBarrier<PIPE_ALL>();
    as_floats(kind_, keys(), raw, room, count);
    if (p_.is_descending == 0) {
      Muls(keys(), keys(), -1.0f, count);
      PipeBarrier<PIPE_V>();
    }
    const bool is_fraction = kind_ == Kind::F32 || kind_ == Kind::F16 || kind_ == Kind::BF16;
    has_nan_ = is_fraction && is_nan(largest(count));
    if (has_nan_ && !lift_nan(count)) return false;
    for (uint32_t at = length_ / 64 * 64; at < pitch_; at += 64) {
      const uint32_t first = at < length_ ? length_ - at : 0;
      const uint32_t width = pitch_ - at < 64 ? pitch_ - at : 64;
      uint64_t mask[2] = {(width < 64 ? (1ull << width) - 1 : ~0ull) & ~((1ull << first) - 1), 0};
      fill_columns(at, mask, lines);
    }
    PipeBarrier<PIPE_V>();
    return true;
  }

  __aicore__ inline void fill_columns(uint32_t at, uint64_t* mask, uint32_t lines) {
    constexpr uint32_t kMostStep = 255;
    if (pitch_ / 8 <= kMostStep) {
      for (uint32_t line = 0; line < lines; line += kMostStep) {
        const uint32_t repeats = lines - line < kMostStep ? lines - line : kMostStep;
        Duplicate(keys()[line * pitch_ + at], -kInfinity, mask, static_cast<uint8_t>(repeats), 1,
                  static_cast<uint8_t>(pitch_ / 8));
      }
      return;
    }
    for (uint32_t line = 0; line < lines; ++line) Duplicate(keys()[line * pitch_ + at], -kInfinity, mask, 1, 1, 8);
  }

  /// The largest of the keys; NaN where one is none.
  __aicore__ inline float largest(uint32_t count) {
    const LocalTensor<float> pair = first_.Get<float>();
    ReduceMax(pair, keys(), first_.Get<float>()[64], static_cast<int32_t>(count));
    PipeBarrier<PIPE_ALL>();
    const float value = pair.GetValue(0);
    PipeBarrier<PIPE_ALL>();
    return value;
  }

  /// NaN goes before infinity in a descending order and behind it in an ascending one: they take the places of infinity
  /// and of the largest float, which must not be there then.
  __aicore__ inline bool lift_nan(uint32_t count) {
    const bool is_descending = p_.is_descending != 0;
    const float infinity = is_descending ? kInfinity : -kInfinity;
    const float next = is_descending ? kLargest : -kLargest;
    const LocalTensor<float> kept = first_.Get<float>()[kTile];
    const LocalTensor<uint8_t> bits = bits_.Get<uint8_t>();
    if (kind_ == Kind::F32) {
      // Is the largest float there beside infinity?
      bool has[2];
      for (uint32_t i = 0; i < 2; ++i) {
        CompareScalar(bits, keys(), i == 0 ? infinity : next, CMPMODE::EQ, count);
        Duplicate(kept, 1.0f, count);
        PipeBarrier<PIPE_V>();
        Select(kept, bits, kept, 0.0f, SELMODE::VSEL_TENSOR_SCALAR_MODE, count);
        PipeBarrier<PIPE_V>();
        ReduceMax(first_.Get<float>(), kept, first_.Get<float>()[64], static_cast<int32_t>(count));
        PipeBarrier<PIPE_ALL>();
        has[i] = first_.Get<float>().GetValue(0) != 0;
        PipeBarrier<PIPE_ALL>();
      }
      if (has[0] && has[1]) return false;
      has_largest_ = has[1];
    } else {
      has_largest_ = false;
    }
    if (!has_largest_) {
      CompareScalar(bits, keys(), infinity, CMPMODE::NE, count);
      PipeBarrier<PIPE_V>();
      Select(keys(), bits, keys(), next, SELMODE::VSEL_TENSOR_SCALAR_MODE, count);
      PipeBarrier<PIPE_V>();
    }
    Compare(bits, keys(), keys(), CMPMODE::EQ, count);
    PipeBarrier<PIPE_V>();
    Select(keys(), bits, keys(), infinity, SELMODE::VSEL_TENSOR_SCALAR_MODE, count);
    PipeBarrier<PIPE_V>();
    return true;
  }

  __aicore__ inline void restore_nan(const LocalTensor<float>& values, uint32_t count) {
    const bool is_descending = p_.is_descending != 0;
    const float infinity = is_descending ? kInfinity : -kInfinity;
    const LocalTensor<uint8_t> bits = bits_.Get<uint8_t>();
    CompareScalar(bits, values, infinity, CMPMODE::NE, count);
    PipeBarrier<PIPE_V>();
    Select(values, bits, values, __builtin_nanf(""), SELMODE::VSEL_TENSOR_SCALAR_MODE, count);
    PipeBarrier<PIPE_V>();
    if (has_largest_) return;
    CompareScalar(bits, values, is_descending ? kLargest : -kLargest, CMPMODE::NE, count);
    PipeBarrier<PIPE_V>();
    // NaN is unequal to it, and stays.
    Select(values, bits, values, infinity, SELMODE::VSEL_TENSOR_SCALAR_MODE, count);
    PipeBarrier<PIPE_V>();
  }

  /// Pairs in order, in `sorted_`: of each line the first `kept` at least.
  __aicore__ inline void sort(uint32_t lines) {
    constexpr uint32_t kMostRepeats = 128;
    const LocalTensor<int32_t> numbers = second_.Get<int32_t>()[kTile];
    for (uint32_t line = 0; line < lines; ++line) CreateVecIndex(numbers[line * pitch_], 0, pitch_);
    PipeBarrier<PIPE_V>();
    const LocalTensor<float> pairs = first_.Get<float>();
    const uint32_t runs = lines * pitch_ / kRun;
    for (uint32_t run = 0; run < runs; run += kMostRepeats) {
      const uint32_t repeats = runs - run < kMostRepeats ? runs - run : kMostRepeats;
      Sort32(pairs[run * 2 * kRun], keys()[run * kRun], numbers.ReinterpretCast<uint32_t>()[run * kRun],
             static_cast<int32_t>(repeats));
    }
    PipeBarrier<PIPE_V>();
    is_second_ = false;
    for (uint32_t run = kRun; run < pitch_; run *= 4) {
      if (run == kRun) {
        merge(0, run, run, 4, static_cast<uint8_t>(lines * pitch_ / (4 * kRun)), nullptr);
      } else {
        for (uint32_t line = 0; line < lines; ++line) merge_line(line * pitch_, run);
      }
      PipeBarrier<PIPE_V>();
      is_second_ = !is_second_;
    }
  }

  __aicore__ inline void merge_line(uint32_t line, uint32_t run) {
    for (uint32_t begin = 0; begin < pitch_; begin += 4 * run) {
      uint16_t lengths[4] = {};
      uint32_t queues = 0;
      for (; queues < 4 && begin + queues * run < pitch_; ++queues) {
        const uint32_t left = pitch_ - begin - queues * run;
        const uint32_t length = left < run ? left : run;
        lengths[queues] = static_cast<uint16_t>(length < kept_ ? length : kept_);
      }
      if (queues == 1) {
        DataCopy(target()[2 * (line + begin)], source()[2 * (line + begin)], (2 * lengths[0] + 7u) / 8 * 8);
      } else {
        merge(line + begin, run, 0, queues, 1, lengths);
      }
    }
  }

  /// Makes one run of up to four that begin `run` pairs apart, of `length` pairs or of `lengths`.
  __aicore__ inline void merge(uint32_t at, uint32_t run, uint32_t length, uint32_t queues, uint8_t repeats,
                               const uint16_t* lengths) {
    MrgSort4Info info;
    for (uint32_t i = 0; i < 4; ++i) info.elementLengths[i] = lengths != nullptr ? lengths[i] : length;
    info.validBit = static_cast<uint16_t>((1u << queues) - 1);
    info.repeatTimes = repeats;
    const LocalTensor<float> from = source()[2 * at];
    MrgSortSrcList<float> list;
    list.src1 = from;
    list.src2 = from[2 * run];
    list.src3 = from[queues > 2 ? 4 * run : 0];
    list.src4 = from[queues > 3 ? 6 * run : 0];
    MrgSort(target()[2 * at], list, info);
  }

  __aicore__ inline LocalTensor<float> source() { return is_second_ ? second_.Get<float>() : first_.Get<float>(); }
  __aicore__ inline LocalTensor<float> target() { return is_second_ ? first_.Get<float>() : second_.Get<float>(); }

  /// Values and places one behind the other, `kept_pitch_` from line to line, and to global memory.
  __aicore__ inline void store(int64_t line, uint32_t lines) {
    const LocalTensor<float> values = target();
    const LocalTensor<int32_t> places = target().ReinterpretCast<int32_t>()[kTile];
    for (uint8_t pattern = 1; pattern <= 2; ++pattern) {
      if ((pattern == 1 ? values_ : places_) == nullptr) continue;
      const LocalTensor<float> to = pattern == 1 ? values : places.ReinterpretCast<float>();
      if (kept_pitch_ == pitch_) {
        pick(to, source(), pattern, lines * pitch_ / kRun);
      } else {
        for (uint32_t i = 0; i < lines; ++i) {
          pick(to[i * kept_pitch_], source()[2 * i * pitch_], pattern, kept_pitch_ / kRun);
        }
      }
    }
    // Comparisons take whole repeats.
    const uint32_t picked = lines * kept_pitch_, count = (picked + 63) / 64 * 64;
    if (picked < count) Duplicate(values[picked], 0.0f, count - picked);
    PipeBarrier<PIPE_V>();
    if (values_ != nullptr) {
      if (has_nan_) restore_nan(values, count);
      if (p_.is_descending == 0) {
        Muls(values, values, -1.0f, count);
        PipeBarrier<PIPE_V>();
      }
      from_floats(kind_, values, keys_.Get<half>(), count);
      send(global<uint8_t>(values_, line * kept_ * element_), values.ReinterpretCast<uint8_t>(), lines, kept_,
           element_);
    }
    if (places_ == nullptr) return;
    if (p_.has_short_places != 0) {
      send(global<uint8_t>(places_, line * kept_ * 4), places.ReinterpretCast<uint8_t>(), lines, kept_, 4);
      return;
    }
    constexpr uint32_t kWide = kTile / 2;  // places of 64 bits that the keys' room takes
    const uint32_t part = kept_pitch_ < kWide ? kept_pitch_ : kWide;
    const uint32_t together = kept_pitch_ < kWide ? kWide / kept_pitch_ : 1;
    for (uint32_t i = 0; i < lines; i += together) {
      const uint32_t rows = lines - i < together ? lines - i : together;
      for (uint32_t column = 0; column < kept_; column += part) {
        const uint32_t width = kept_ - column < part ? kept_ - column : part;
        const LocalTensor<int64_t> wide = keys_.Get<int64_t>();
        PipeBarrier<PIPE_ALL>();
        Cast(wide, places[i * kept_pitch_ + column], RoundMode::CAST_NONE, rows * part);
        const int64_t at = (line + i) * kept_ + column;
        send(global<uint8_t>(places_, at * 8), wide.ReinterpretCast<uint8_t>(), rows, width, 8);
      }
    }
  }

  __aicore__ inline void pick(const LocalTensor<float>& to, const LocalTensor<float>& pairs, uint8_t pattern,
                              uint32_t repeats) {
    constexpr uint32_t kMostRepeats = 128;
    for (uint32_t i = 0; i < repeats; i += kMostRepeats) {
      const uint32_t count = repeats - i < kMostRepeats ? repeats - i : kMostRepeats;
      uint64_t picked = 0;
      GatherMask(to[i * kRun], pairs[i * 2 * kRun], pattern, false, 0,
                 GatherMaskParams(1, static_cast<uint16_t>(count), 8, 0), picked);
    }
  }

  /// Rows of `width` elements, whose room in the buffer is that of `kept_pitch_` of them, one behind the other.
  __aicore__ inline void send(const GlobalTensor<uint8_t>& to, const LocalTensor<uint8_t>& from, uint32_t rows,
                              uint32_t width, uint32_t bytes) {
    const uint32_t filled = (width * bytes + 31) / 32 * 32;
    const uint32_t gap = rows > 1 ? (kept_pitch_ * bytes - filled) / 32 : 0;
    PipeBarrier<PIPE_ALL>();
    DataCopyPad(to, from, DataCopyExtParams(static_cast<uint16_t>(rows), width * bytes, gap, 0, 0));
  }

  static constexpr float kInfinity = __builtin_inff();

  GM_ADDR x_;
  GM_ADDR values_;
  GM_ADDR places_;
  const LinePlan& p_;
  Kind kind_;
  uint32_t element_;
  uint32_t length_;
  uint32_t kept_;
  uint32_t pitch_;
  uint32_t kept_pitch_;
  bool has_nan_ = false;
  bool has_largest_ = false;
  bool is_second_ = false;
  TPipe pipe_;
  TBuf<TPosition::VECCALC> first_;
  TBuf<TPosition::VECCALC> second_;
  TBuf<TPosition::VECCALC> keys_;
  TBuf<TPosition::VECCALC> bits_;
};

}  // namespace opkit::kernels
