/// The ordinary instructions that functions of the high-level library are made of, on the first floats of tensors.
#pragma once

#include "opkit/api/pipe.h"
#include "opkit/api/vector.h"

namespace opkit::high_level {

using Floats = AscendC::LocalTensor<float>;

/// Each method is one instruction on `length` floats and the barrier behind it, or a few of them. Destinations may be
/// sources unless a comment says otherwise.
struct FloatSteps {
  uint32_t length;
  Where where;

#define OPKIT_STEP(name, Instruction, parameters, ...) \
  void name parameters const {                         \
    AscendC::Instruction(__VA_ARGS__, length, where);  \
    barrier();                                         \
  }
  OPKIT_STEP(add, Add, (const Floats& dst, const Floats& a, const Floats& b), dst, a, b)
  OPKIT_STEP(sub, Sub, (const Floats& dst, const Floats& a, const Floats& b), dst, a, b)
  OPKIT_STEP(mul, Mul, (const Floats& dst, const Floats& a, const Floats& b), dst, a, b)
  OPKIT_STEP(div, Div, (const Floats& dst, const Floats& a, const Floats& b), dst, a, b)
  OPKIT_STEP(max, Max, (const Floats& dst, const Floats& a, const Floats& b), dst, a, b)
  OPKIT_STEP(min, Min, (const Floats& dst, const Floats& a, const Floats& b), dst, a, b)
  OPKIT_STEP(add, Adds, (const Floats& dst, const Floats& a, float value), dst, a, value)
  OPKIT_STEP(mul, Muls, (const Floats& dst, const Floats& a, float value), dst, a, value)
  OPKIT_STEP(max, Maxs, (const Floats& dst, const Floats& a, float value), dst, a, value)
  OPKIT_STEP(min, Mins, (const Floats& dst, const Floats& a, float value), dst, a, value)
  OPKIT_STEP(abs, Abs, (const Floats& dst, const Floats& a), dst, a)
  OPKIT_STEP(exp, Exp, (const Floats& dst, const Floats& a), dst, a)
  OPKIT_STEP(ln, Ln, (const Floats& dst, const Floats& a), dst, a)
  OPKIT_STEP(sqrt, Sqrt, (const Floats& dst, const Floats& a), dst, a)
  OPKIT_STEP(relu, Relu, (const Floats& dst, const Floats& a), dst, a)
  OPKIT_STEP(fill, Duplicate, (const Floats& dst, float value), dst, value)
#undef OPKIT_STEP

  /// 1 / a, rounded: the instruction's own accuracy is stated for kernels that call it, not for these functions.
  void reciprocal(const Floats& dst, const Floats& a) const {
    Instr instr = vec::unary(Op::Reciprocal, dst.operand(), a.operand(), where);
    instr.mode = kRefined;
    vec::set_count<true>(instr, length);
    issue(instr);
    barrier();
  }
  void clamp(const Floats& dst, const Floats& a, float low, float high) const {
    min(dst, a, high);
    max(dst, dst, low);
  }
  /// 1 where a > limit, 0 elsewhere; NaN stays. `limit` is not 0: the smallest differences grow beyond 1 in one step.
  void above(const Floats& dst, const Floats& a, float limit) const {
    add(dst, a, -limit);
    mul(dst, dst, kGrowth);
    clamp(dst, dst, 0.0f, 1.0f);
  }
  /// 1 where a < 0, 0 elsewhere.
  void negative(const Floats& dst, const Floats& a) const {
    mul(dst, a, -kGrowth);
    mul(dst, dst, kGrowth);
    clamp(dst, dst, 0.0f, 1.0f);
  }
  /// -1, 0 or 1. The smallest float, 2^-149, grows beyond 1 in two steps.
  void sign(const Floats& dst, const Floats& a) const {
    mul(dst, a, kGrowth);
    mul(dst, dst, kGrowth);
    clamp(dst, dst, -1.0f, 1.0f);
  }
  /// Nearest whole number, ties to even, of numbers below 2^22: at 1.5 * 2^23 floats are whole.
  void nearest(const Floats& dst, const Floats& a) const {
    constexpr float kWhole = 12582912.0f;
    add(dst, a, kWhole);
    add(dst, dst, -kWhole);
  }
  /// 1 where the whole number `a` is odd, 0 where it is even. dst is not a.
  void odd(const Floats& dst, const Floats& a) const {
    mul(dst, a, 0.5f);
    add(dst, dst, -0.25f);
    nearest(dst, dst);
    mul(dst, dst, -2.0f);
    add(dst, dst, a);
  }
  /// low where mask is 0 and high where it is 1, both finite. Changes high and mask.
  void select(const Floats& dst, const Floats& low, const Floats& high, const Floats& mask) const {
    mul(high, high, mask);
    mul(mask, mask, -1.0f);
    add(mask, mask, 1.0f);
    mul(dst, low, mask);
    add(dst, dst, high);
  }
  /// Coefficients of the highest power first. dst is not x.
  template <uint32_t n>
  void polynomial(const Floats& dst, const Floats& x, const float (&coefficients)[n]) const {
    mul(dst, x, coefficients[0]);
    add(dst, dst, coefficients[1]);
    for (uint32_t i = 2; i < n; ++i) {
      mul(dst, dst, x);
      add(dst, dst, coefficients[i]);
    }
  }
  /// x + x^3 P(x^2). The three tensors differ.
  template <uint32_t n>
  void odd_polynomial(const Floats& dst, const Floats& x, const Floats& square, const float (&coefficients)[n]) const {
    mul(square, x, x);
    polynomial(dst, square, coefficients);
    mul(dst, dst, square);
    mul(dst, dst, x);
    add(dst, dst, x);
  }

 private:
  static constexpr float kGrowth = 0x1p100f;
  static void barrier() { AscendC::PipeBarrier<PIPE_V>(); }
};

}  // namespace opkit::high_level
