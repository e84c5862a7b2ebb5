/// Functions of a tile of floats that need more than a formula: quotients of any size, powers to the last bit but one,
/// and angles of many turns.
#pragma once

#include "kernel_operator.h"

namespace opkit::kernels {

using namespace AscendC;

/// A tile and the room that its functions have, each `count` floats; `bits` holds a bit for each.
struct Tile {
  static constexpr uint32_t kSpares = 6;
  LocalTensor<float> spare[kSpares];
  LocalTensor<float> work;
  LocalTensor<uint8_t> bits;
  uint32_t count;

  /// to = a with only the upper 12 bits of its significand, so that products of two such numbers are exact.
  __aicore__ inline void upper(const LocalTensor<float>& to, const LocalTensor<float>& a) const { keep(to, a, 12); }

  /// to = a without the last `dropped` bits.
  __aicore__ inline void keep(const LocalTensor<float>& to, const LocalTensor<float>& a, uint32_t dropped) const {
    Duplicate(work.ReinterpretCast<int32_t>(), -(1 << dropped), count);
    PipeBarrier<PIPE_V>();
    And(to.ReinterpretCast<int16_t>(), a.ReinterpretCast<int16_t>(), work.ReinterpretCast<int16_t>(), 2 * count);
    PipeBarrier<PIPE_V>();
  }

  /// to -= a * b, without rounding the product first.
  __aicore__ inline void take_off(const LocalTensor<float>& to, const LocalTensor<float>& a,
                                  const LocalTensor<float>& b) const {
    Mul(work, a, b, count);
    PipeBarrier<PIPE_V>();
    Sub(to, to, work, count);
    PipeBarrier<PIPE_V>();
  }

  /// 1 where the comparison holds, else 0.
  __aicore__ inline void compare(const LocalTensor<float>& to, const LocalTensor<float>& a, const LocalTensor<float>& b,
                                 CMPMODE mode) const {
    Compare(bits, a, b, mode, count);
    Duplicate(work, 1.0f, count);
    PipeBarrier<PIPE_V>();
    Select(to, bits, work, 0.0f, SELMODE::VSEL_TENSOR_SCALAR_MODE, count);
    PipeBarrier<PIPE_V>();
  }

  /// to = a where the comparison of left and right holds, else b.
  __aicore__ inline void choose(const LocalTensor<float>& to, const LocalTensor<float>& left,
                                const LocalTensor<float>& right, CMPMODE mode, const LocalTensor<float>& a,
                                const LocalTensor<float>& b) const {
    Compare(bits, left, right, mode, count);
    PipeBarrier<PIPE_V>();
    Select(to, bits, a, b, SELMODE::VSEL_TENSOR_TENSOR_MODE, count);
    PipeBarrier<PIPE_V>();
  }

  __aicore__ inline float largest(const LocalTensor<float>& a, const LocalTensor<float>& space) const {
    ReduceMax(work, a, space, count);
    PipeBarrier<PIPE_ALL>();
    const float value = work.GetValue(0);
    PipeBarrier<PIPE_ALL>();
    return value;
  }
};

/// to = what is left of a after as many b as fit, with a's sign: exact, however many they are. NaN for an infinite a
/// and for a b of 0.
///
/// Each round takes off b times the quotient's first 11 bits, a product that 24 bits hold in two parts; so what remains
/// is exact. A rounded quotient may be too large by one in its last bit: the rest then has the other sign.
__aicore__ inline void exact_remainder(const Tile& tile, const LocalTensor<float>& to, const LocalTensor<float>& a,
                                       const LocalTensor<float>& b) {
  const LocalTensor<float>&size = tile.spare[0], &upper = tile.spare[1], &lower = tile.spare[2], &q = tile.spare[3],
                     &other = tile.spare[4];
  const uint32_t count = tile.count;
  Sub(other, a, a, count);  // 0, or NaN
  PipeBarrier<PIPE_V>();
  Add(to, a, other, count);
  // Of 277 bits from the largest number to the smallest: multiples of 2^200 b first, so that no quotient overflows.
  for (int32_t shift = 2; shift >= 0; --shift) {
    Abs(size, b, count);
    Duplicate(q, 0.0f, count);
    Duplicate(other, __builtin_nanf(""), count);
    PipeBarrier<PIPE_V>();
    tile.choose(size, size, q, CMPMODE::EQ, other, size);
    if (shift == 2) {
      // By 0 or NaN the rest is NaN, also where no lane of the tile has a round to go.
      tile.choose(upper, size, size, CMPMODE::EQ, q, other);
      Add(to, to, upper, count);
      PipeBarrier<PIPE_V>();
    }
    for (int32_t i = 0; i < shift; ++i) {
      Muls(size, size, 0x1p100f, count);
      PipeBarrier<PIPE_V>();
    }
    tile.upper(upper, size);
    Sub(lower, size, upper, count);
    PipeBarrier<PIPE_V>();
    // An infinite divisor has no lower part: inf - inf is none.
    tile.choose(lower, upper, size, CMPMODE::EQ, q, lower);
    for (uint32_t round = 0; round < 12; ++round) {
      Abs(other, to, count);
      PipeBarrier<PIPE_V>();
      tile.compare(q, other, size, CMPMODE::GE);
      if (tile.largest(q, other) == 0) break;
      Div(other, to, size, count);
      PipeBarrier<PIPE_V>();
      Cast(other, other, RoundMode::CAST_TRUNC, count);
      PipeBarrier<PIPE_V>();
      tile.keep(other, other, 13);
      // Lanes that are done take off nothing: infinity times 0 would be NaN.
      Duplicate(tile.work, 0.0f, count);
      PipeBarrier<PIPE_V>();
      tile.choose(q, other, tile.work, CMPMODE::NE, upper, tile.work);
      tile.take_off(to, other, q);
      tile.take_off(to, other, lower);
    }
  }
  Abs(other, to, count);
  Duplicate(q, 0.0f, count);
  PipeBarrier<PIPE_V>();
  // A rest of the other sign: one b too many was taken off.
  Sub(other, size, other, count);
  PipeBarrier<PIPE_V>();
  tile.compare(upper, to, q, CMPMODE::LT);
  tile.compare(lower, a, q, CMPMODE::LT);
  Sub(lower, lower, upper, count);  // 1: a below 0 and the rest above; -1: the other way; 0: neither, or a rest of 0
  PipeBarrier<PIPE_V>();
  Mul(other, other, lower, count);
  PipeBarrier<PIPE_V>();
  Muls(other, other, -1.0f, count);
  PipeBarrier<PIPE_V>();
  tile.choose(upper, to, q, CMPMODE::NE, lower, q);
  tile.choose(to, upper, q, CMPMODE::NE, other, to);
  // A rest of 0 has a's sign.
  Muls(other, a, 0.0f, count);
  PipeBarrier<PIPE_V>();
  tile.choose(to, to, q, CMPMODE::EQ, other, to);
}

/// to = a ** b for 0 < a < infinity and any b that is a number.
///
/// log2(a) is e + 2 artanh(s) / ln 2 with s = (m - 1) / (m + 1), in two floats; so is its product with b, whose whole
/// part goes to the exponent. The series are Taylor's.
__aicore__ inline void power(const Tile& tile, const LocalTensor<float>& to, const LocalTensor<float>& a,
                             const LocalTensor<float>& b) {
  constexpr int32_t kRootOfHalf = 0x3F3504F3;
  const LocalTensor<float>&e = tile.spare[0], &s = tile.spare[1], &rest = tile.spare[2], &high = tile.spare[3],
                     &low = tile.spare[4], &t = tile.spare[5], &work = tile.work;
  const uint32_t count = tile.count;
  const auto step = [] { PipeBarrier<PIPE_V>(); };
  // Numbers below the normal ones are lifted by 24 bits.
  Duplicate(t, 1.17549435e-38f, count);
  step();
  tile.compare(low, a, t, CMPMODE::LT);
  Muls(t, low, 16777215.0f, count);
  step();
  Adds(t, t, 1.0f, count);
  step();
  Mul(to, a, t, count);
  Muls(low, low, -24.0f, count);
  step();
  Adds(t.ReinterpretCast<int32_t>(), to.ReinterpretCast<int32_t>(), -kRootOfHalf, count);
  step();
  ShiftRight(t.ReinterpretCast<int32_t>(), t.ReinterpretCast<int32_t>(), 23, count);
  step();
  Cast(e, t.ReinterpretCast<int32_t>(), RoundMode::CAST_RINT, count);
  ShiftLeft(t.ReinterpretCast<int32_t>(), t.ReinterpretCast<int32_t>(), 23, count);
  step();
  Add(e, e, low, count);
  Sub(to.ReinterpretCast<int32_t>(), to.ReinterpretCast<int32_t>(), t.ReinterpretCast<int32_t>(), count);  // m
  step();
  // s, and what it lacks: (m - 1 - s (m + 1)) / (m + 1), by products of halves that are exact.
  Adds(high, to, 1.0f, count);
  Adds(rest, to, -1.0f, count);
  step();
  Div(s, rest, high, count);
  step();
  tile.upper(t, s);
  tile.upper(low, high);
  const auto take_off_lower = [&] {
    Sub(work, s, t, count);
    step();
    Mul(work, work, low, count);
    step();
    Sub(rest, rest, work, count);
    step();
  };
  tile.take_off(rest, t, low);
  take_off_lower();
  Sub(low, high, low, count);
  step();
  tile.take_off(rest, t, low);
  take_off_lower();
  // And what m + 1 has lost by rounding.
  Adds(low, high, -1.0f, count);
  step();
  Sub(low, to, low, count);
  step();
  tile.take_off(rest, s, low);
  Div(rest, rest, high, count);
  Sub(to, s, t, count);
  step();
  // 2 / ln 2 = 2.8853900817779268 in three parts, the first of 12 bits.
  constexpr float kFirst = 2.884765625f, kSecond = 0.00062445668f;
  constexpr float kScale = 2.88539008177792681f;
  Mul(high, s, s, count);
  step();
  Muls(low, high, 1.0f / 11, count);
  step();
  Adds(low, low, 1.0f / 9, count);
  step();
  Mul(low, low, high, count);
  step();
  Adds(low, low, 1.0f / 7, count);
  step();
  Mul(low, low, high, count);
  step();
  Adds(low, low, 1.0f / 5, count);
  step();
  Mul(low, low, high, count);
  step();
  Adds(low, low, 1.0f / 3, count);
  step();
  Mul(low, low, high, count);
  step();
  Mul(low, low, s, count);
  step();
  Add(low, low, rest, count);
  step();
  Muls(low, low, kScale, count);
  Muls(work, s, kSecond, count);
  step();
  Add(low, low, work, count);
  Muls(work, to, kFirst, count);
  step();
  Add(low, low, work, count);
  Muls(t, t, kFirst, count);  // exact
  step();
  // e + t + low in two floats; |e| is 0 or no less than |t|.
  Add(high, e, t, count);
  step();
  Sub(work, high, e, count);
  step();
  Sub(t, t, work, count);
  step();
  Add(low, low, t, count);
  step();
  Add(t, high, low, count);
  step();
  Sub(work, t, high, count);
  step();
  Sub(low, low, work, count);
  step();
  // Times b, within what decides over 0 and infinity.
  constexpr float kMostPower = 8589934592.0f;
  Maxs(to, b, -kMostPower, count);
  step();
  Mins(to, to, kMostPower, count);
  tile.upper(high, t);
  Sub(t, t, high, count);
  step();
  Add(low, low, t, count);
  tile.upper(t, to);
  Mul(low, low, to, count);
  Sub(to, to, t, count);
  step();
  Mul(to, to, high, count);
  Mul(high, high, t, count);  // exact
  step();
  Add(low, low, to, count);
  step();
  Add(t, high, low, count);
  step();
  Maxs(t, t, -252.0f, count);
  step();
  Mins(t, t, 252.0f, count);
  step();
  Cast(t, t, RoundMode::CAST_RINT, count);
  step();
  Sub(high, high, t, count);
  step();
  Add(s, high, low, count);
  step();
  Sub(work, s, high, count);
  step();
  Sub(low, low, work, count);
  Maxs(s, s, -0.75f, count);
  step();
  Mins(s, s, 0.75f, count);
  Maxs(low, low, -0.01f, count);
  step();
  Mins(low, low, 0.01f, count);
  // 2 ** s - 1
  constexpr float kExp2[] = {1.01780860092e-07f, 1.32154867901e-06f, 1.52527338041e-05f, 0.000154035303934f,
                             0.00133335581464f,  0.00961812910763f,  0.0555041086648f,   0.240226506959f,
                             0.693147180560f};
  Muls(rest, s, kExp2[0], count);
  step();
  for (uint32_t i = 1; i < 9; ++i) {
    Adds(rest, rest, kExp2[i], count);
    step();
    if (i < 8) Mul(rest, rest, s, count);
    step();
  }
  Mul(rest, rest, s, count);
  Muls(low, low, kExp2[8], count);
  step();
  Add(rest, rest, low, count);
  step();
  Adds(to, rest, 1.0f, count);
  // Times 2 ** t in two factors, so that only the last of them rounds.
  const LocalTensor<int32_t> whole = t.ReinterpretCast<int32_t>(), half = high.ReinterpretCast<int32_t>();
  Cast(whole, t, RoundMode::CAST_RINT, count);
  step();
  ShiftRight(half, whole, 1, count);
  step();
  Sub(whole, whole, half, count);
  Adds(half, half, 127, count);
  step();
  Adds(whole, whole, 127, count);
  ShiftLeft(half, half, 23, count);
  step();
  ShiftLeft(whole, whole, 23, count);
  Mul(to, to, high, count);
  step();
  Mul(to, to, t, count);
  step();
}

enum class Angle { kSine, kCosine, kTangent };

/// The sine, cosine or tangent of one angle of 65504 or more, by its quotient with pi/2 in 96 bits (Payne and Hanek).
__aicore__ inline float far_angle(float angle, Angle function) {
  // 2 / pi after the point, behind a word of 0.
  constexpr uint32_t kWords[] = {0,          0xA2F9836E, 0x4E441529, 0xFC2757D1, 0xF534DDC0,
                                 0xDB629599, 0x3C439041, 0xFE5163AB, 0xDEBBC561};
  uint32_t word = 0;
  __builtin_memcpy(&word, &angle, sizeof(word));
  const auto exponent = static_cast<int32_t>(word >> 23 & 255);
  if (exponent == 255) return __builtin_nanf("");
  const uint64_t digits = (word & 0x7FFFFF) | 0x800000;
  // From the bit on whose product with the last digit counts 2: four quarter turns are none.
  const int32_t begin = exponent - 150 + 30;
  uint32_t window[3];
  for (int32_t i = 0; i < 3; ++i) {
    const int32_t at = begin + 32 * i;
    const uint64_t pair = static_cast<uint64_t>(kWords[at / 32]) << 32 | kWords[at / 32 + 1];
    window[i] = static_cast<uint32_t>(pair >> (32 - at % 32));
  }
  const uint64_t last = digits * window[2];
  const uint64_t middle = digits * window[1] + (last >> 32);
  const uint32_t first = static_cast<uint32_t>(digits * window[0] + (middle >> 32));
  uint32_t turns = first >> 30;
  auto fraction = static_cast<int64_t>((static_cast<uint64_t>(first) << 34) |
                                       (static_cast<uint64_t>(static_cast<uint32_t>(middle)) << 2) |
                                       (static_cast<uint32_t>(last) >> 30));
  // As signed: a fraction of half a quarter turn or more is taken from the next one.
  if (fraction < 0) ++turns;
  const float rest = static_cast<float>(fraction) * 8.5153039502163865e-20f;  // pi / 2 / 2 ** 64
  const float square = rest * rest;
  const float sine =
      rest + rest * square *
                 (-0.16666667f + square * (0.008333333f + square * (-0.00019841087f + square * 2.753646e-06f)));
  const float cosine =
      1.0f + square * (-0.5f + square * (0.041666668f +
                                         square * (-0.0013888889f + square * (2.4801587e-05f - square * 2.755732e-07f))));
  const bool is_negative = word >> 31 != 0;
  if (function == Angle::kTangent) {
    const float tangent = (turns & 1) != 0 ? -cosine / sine : sine / cosine;
    return is_negative ? -tangent : tangent;
  }
  if (function == Angle::kCosine) ++turns;
  const float value = (turns & 1) != 0 ? cosine : sine;
  return ((turns & 2) != 0) != (is_negative && function == Angle::kSine) ? -value : value;
}

/// Puts right what Sin, Cos and Tan, which are documented up to 65504, say of angles beyond; these are few.
__aicore__ inline void far_angles(const Tile& tile, const LocalTensor<float>& to, const LocalTensor<float>& a,
                                  Angle function) {
  constexpr float kLimit = 65504.0f;
  Abs(tile.spare[0], a, tile.count);
  PipeBarrier<PIPE_V>();
  Duplicate(tile.spare[1], kLimit, tile.count);
  PipeBarrier<PIPE_V>();
  tile.compare(tile.spare[2], tile.spare[0], tile.spare[1], CMPMODE::GT);
  if (tile.largest(tile.spare[2], tile.spare[1]) == 0) return;
  for (uint32_t i = 0; i < tile.count; ++i) {
    const float angle = a.GetValue(i);
    if (angle > kLimit || angle < -kLimit) to.SetValue(i, far_angle(angle, function));
  }
  PipeBarrier<PIPE_ALL>();
}

}  // namespace opkit::kernels
