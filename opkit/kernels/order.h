// Kernels along one dim: sorting (sort, topk), running sums and extremes (cumsum, cummax), the place of the extreme
// (argmax, max over a dim). The scalar unit does what `extremes.h` and `sorting.h` do not: it compares one element with
// the next.
#pragma once

#include "extremes.h"
#include "global_memory.h"
#include "kernel_operator.h"
#include "plans.h"
#include "sorting.h"

namespace opkit::kernels {

using namespace AscendC;

constexpr int64_t kHighestKey = 0x7fffffffffffffff;

/// The bits of a float as a number of the same order; both zeros are 0, and NaN is above all.
__aicore__ inline int64_t key_of_bits(int64_t bits, int64_t sign, int64_t infinity) {
  const int64_t magnitude = bits & (sign - 1);
  if (magnitude > infinity) return kHighestKey;
  return (bits & sign) != 0 ? -magnitude : magnitude;
}

__aicore__ inline int64_t key_at(Kind kind, GM_ADDR x, int64_t at) {
  switch (kind) {
    case Kind::F32: return key_of_bits(global<uint32_t>(x, at).GetValue(0), 0x80000000ll, 0x7f800000);
    case Kind::F16: return key_of_bits(global<uint16_t>(x, at).GetValue(0), 0x8000, 0x7c00);
    case Kind::BF16: return key_of_bits(global<uint16_t>(x, at).GetValue(0), 0x8000, 0x7f80);
    case Kind::S64: return global<int64_t>(x, at).GetValue(0);
    case Kind::S32: return global<int32_t>(x, at).GetValue(0);
    case Kind::S16: return global<int16_t>(x, at).GetValue(0);
    case Kind::S8: return global<int8_t>(x, at).GetValue(0);
    default: return global<uint8_t>(x, at).GetValue(0);
  }
}

__aicore__ inline bool is_float(Kind kind) { return kind == Kind::F32 || kind == Kind::F16 || kind == Kind::BF16; }

__aicore__ inline float real_at(Kind kind, GM_ADDR x, int64_t at) {
  switch (kind) {
    case Kind::F32: return global<float>(x, at).GetValue(0);
    case Kind::F16: return static_cast<float>(global<half>(x, at).GetValue(0));
    case Kind::BF16: return ToFloat(global<bfloat16_t>(x, at).GetValue(0));
    default: return static_cast<float>(key_at(kind, x, at));
  }
}

__aicore__ inline void put_real(Kind kind, Outbox& to, int64_t at, float value) {
  switch (kind) {
    case Kind::F32: to.put(at, value); break;
    case Kind::F16: to.put(at, static_cast<half>(value)); break;
    default: to.put(at, ToBfloat16(value)); break;
  }
}

__aicore__ inline void put_whole(Kind kind, Outbox& to, int64_t at, int64_t value) {
  switch (kind) {
    case Kind::S64: to.put(at, value); break;
    case Kind::S32: to.put(at, static_cast<int32_t>(value)); break;
    case Kind::S16: to.put(at, static_cast<int16_t>(value)); break;
    default: to.put(at, static_cast<uint8_t>(value)); break;
  }
}

__aicore__ inline void put_element(Kind kind, GM_ADDR from, int64_t at, Outbox& to, int64_t place) {
  switch (kind) {
    case Kind::S64: to.put(place, global<int64_t>(from, at).GetValue(0)); break;
    case Kind::F32:
    case Kind::S32: to.put(place, global<int32_t>(from, at).GetValue(0)); break;
    case Kind::F16:
    case Kind::BF16:
    case Kind::S16: to.put(place, global<int16_t>(from, at).GetValue(0)); break;
    default: to.put(place, global<uint8_t>(from, at).GetValue(0)); break;
  }
}

__aicore__ inline void put_place(const LinePlan& p, Outbox& to, int64_t at, int64_t number) {
  if (p.has_short_places != 0) {
    to.put(at, static_cast<int32_t>(number));
  } else {
    to.put(at, number);
  }
}

/// Calls `line(first, place)` for the lines of this core: the first element of one, and of its result. Lines that
/// follow each other are a core's, so that their results go out together.
template <typename Line>
__aicore__ inline void for_each_line(const LinePlan& p, const Line& line) {
  const int64_t cores = GetBlockNum();
  const int64_t count = p.outer * p.inner;
  const int64_t end = count * (GetBlockIdx() + 1) / cores;
  for (int64_t i = count * GetBlockIdx() / cores; i < end; ++i) {
    const int64_t outer = i / p.inner;
    const int64_t inner = i % p.inner;
    line(outer * p.length * p.inner + inner, outer * p.kept * p.inner + inner);
  }
}

/// Sorts lines by the scalar unit, from this core's `skipped`th on.
__aicore__ inline void sort_by_scalars(GM_ADDR x, GM_ADDR values, GM_ADDR places, const LinePlan& p, int64_t skipped) {
  const auto kind = static_cast<Kind>(p.kind);
  const auto length = static_cast<uint32_t>(p.length);
  TPipe pipe;
  TBuf<TPosition::VECCALC> space;
  const uint32_t padded = (length + 3) / 4 * 4;
  pipe.InitBuffer(space, padded * 24 + 2 * Outbox::kBytes);
  const LocalTensor<uint8_t> out = space.Get<uint8_t>()[padded * 24];
  Outbox values_out(out, values);
  Outbox places_out(out[Outbox::kBytes], places);
  const LocalTensor<int64_t> keys = space.Get<int64_t>();
  const LocalTensor<int32_t> numbers = keys[padded * 2].ReinterpretCast<int32_t>();
  for_each_line(p, [&](int64_t first, int64_t place) {
    if (skipped-- > 0) return;
    for (uint32_t i = 0; i < length; ++i) {
      keys.SetValue(i, key_at(kind, x, first + i * p.inner));
      numbers.SetValue(i, static_cast<int32_t>(i));
    }
    uint32_t from = 0;
    uint32_t to = padded;
    for (uint32_t width = 1; width < length; width *= 2) {
      for (uint32_t begin = 0; begin < length; begin += 2 * width) {
        const uint32_t middle = begin + width < length ? begin + width : length;
        const uint32_t end = middle + width < length ? middle + width : length;
        uint32_t left = begin;
        uint32_t right = middle;
        for (uint32_t i = begin; i < end; ++i) {
          bool takes_left = right >= end;
          if (!takes_left && left < middle) {
            const int64_t a = keys.GetValue(from + left);
            const int64_t b = keys.GetValue(from + right);
            takes_left = p.is_descending != 0 ? a >= b : a <= b;
          }
          const uint32_t taken = takes_left ? left++ : right++;
          keys.SetValue(to + i, keys.GetValue(from + taken));
          numbers.SetValue(to + i, numbers.GetValue(from + taken));
        }
      }
      const uint32_t other = from;
      from = to;
      to = other;
    }
    for (int64_t i = 0; i < p.kept; ++i) {
      const int64_t number = numbers.GetValue(from + static_cast<uint32_t>(i));
      if (values != nullptr) put_element(kind, x, first + number * p.inner, values_out, place + i * p.inner);
      if (places != nullptr) put_place(p, places_out, place + i * p.inner, number);
    }
  });
  values_out.flush();
  places_out.flush();
}

/// A stable sort of each line; `kept` elements of it are stored, and where they were. Either may be left out. NaN is
/// above all others.
__aicore__ inline void sort_lines(GM_ADDR x, GM_ADDR values, GM_ADDR places, const LinePlan& p) {
  int64_t skipped = 0;
  if (p.inner == 1 && fits_floats(static_cast<Kind>(p.kind)) && p.length <= LineSorter::kTile) {
    const int64_t begin = p.outer * GetBlockIdx() / GetBlockNum();
    const int64_t end = p.outer * (GetBlockIdx() + 1) / GetBlockNum();
    const int64_t left = LineSorter(x, values, places, p).run(begin, end);
    if (left == 0) return;
    skipped = end - begin - left;
  }
  sort_by_scalars(x, values, places, p, skipped);
}

/// Running sums and products of each line.
__aicore__ inline void scan_lines(GM_ADDR x, GM_ADDR out, const LinePlan& p) {
  const auto kind = static_cast<Kind>(p.kind);
  const auto result = static_cast<Kind>(p.result_kind);
  const bool is_product = p.action == LinePlan::kProduct;
  TPipe pipe;
  TBuf<TPosition::VECCALC> space;
  pipe.InitBuffer(space, Outbox::kBytes);
  Outbox results(space.Get<uint8_t>(), out);
  for_each_line(p, [&](int64_t first, int64_t place) {
    if (is_float(result)) {
      float sum = is_product ? 1.0f : 0.0f;
      for (int64_t i = 0; i < p.length; ++i) {
        const float value = real_at(kind, x, first + i * p.inner);
        sum = is_product ? sum * value : sum + value;
        put_real(result, results, place + i * p.inner, sum);
      }
      return;
    }
    uint64_t sum = is_product ? 1 : 0;
    for (int64_t i = 0; i < p.length; ++i) {
      const auto value = static_cast<uint64_t>(key_at(kind, x, first + i * p.inner));
      sum = is_product ? sum * value : sum + value;
      put_whole(result, results, place + i * p.inner, static_cast<int64_t>(sum));
    }
  });
  results.flush();
}

/// The sum or product of whole numbers of each line.
__aicore__ inline void fold_lines(GM_ADDR x, GM_ADDR out, const LinePlan& p) {
  const auto kind = static_cast<Kind>(p.kind);
  const bool is_product = p.action == LinePlan::kProduct;
  TPipe pipe;
  TBuf<TPosition::VECCALC> space;
  pipe.InitBuffer(space, Outbox::kBytes);
  Outbox results(space.Get<uint8_t>(), out);
  for_each_line(p, [&](int64_t first, int64_t place) {
    uint64_t sum = is_product ? 1 : 0;
    for (int64_t i = 0; i < p.length; ++i) {
      const auto value = static_cast<uint64_t>(key_at(kind, x, first + i * p.inner));
      sum = is_product ? sum * value : sum + value;
    }
    put_whole(static_cast<Kind>(p.result_kind), results, place, static_cast<int64_t>(sum));
  });
  results.flush();
}

/// The largest or smallest element of each line and its place, or the running ones. NaN goes before all others.
/// `space`: 32 bytes for each core where several share a line.
__aicore__ inline void extreme_lines(GM_ADDR x, GM_ADDR values, GM_ADDR places, GM_ADDR space, const LinePlan& p) {
  const auto kind = static_cast<Kind>(p.kind);
  const bool is_least = p.is_descending == 0;
  const bool is_running = p.kept == p.length && p.action == LinePlan::kRunning;
  // Places among columns are floats for a while, which hold so many.
  if (!is_running && fits_floats(kind) && (p.inner == 1 || p.length <= 1 << 24)) {
    Extremes(x, values, places, space, p).run();
    return;
  }
  TPipe pipe;
  TBuf<TPosition::VECCALC> room;
  pipe.InitBuffer(room, 2 * Outbox::kBytes);
  Outbox values_out(room.Get<uint8_t>(), values);
  Outbox places_out(room.Get<uint8_t>()[Outbox::kBytes], places);
  const auto put = [&](int64_t from, int64_t place, int64_t number) {
    if (values != nullptr) put_element(kind, x, from, values_out, place);
    if (places != nullptr) put_place(p, places_out, place, number);
  };
  for_each_line(p, [&](int64_t first, int64_t place) {
    int64_t best = 0;
    int64_t number = -1;
    for (int64_t i = 0; i < p.length; ++i) {
      int64_t key = key_at(kind, x, first + i * p.inner);
      if (is_least) key = is_float(kind) && key == kHighestKey ? key : ~key;
      // Of equal ones the running extreme is the last, the extreme of a whole line the first.
      if (number < 0 || key > best || (is_running && key == best)) {
        best = key;
        number = i;
      }
      if (is_running) put(first + number * p.inner, place + i * p.inner, number);
    }
    if (!is_running) put(first + number * p.inner, place, number);
  });
  values_out.flush();
  places_out.flush();
}

}  // namespace opkit::kernels
