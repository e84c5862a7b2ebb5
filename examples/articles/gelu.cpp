// y = 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))), halves: number by number on the scalar unit with a fraction
// for tanh, as article 001 has it, and with vector instructions.
#include "kernel_operator.h"

using namespace AscendC;

namespace {

constexpr float kSqrt2OverPi = 0.7978845608f;
constexpr float kCubic = 0.044715f;
constexpr uint32_t kBlock = 256;

/// tanh as a fraction of polynomials (Pade, 7 over 6), which is within 1e-4 up to 5.
__aicore__ inline float fast_tanh(float x) {
  if (x > 5.0f) return 1.0f;
  if (x < -5.0f) return -1.0f;
  const float s = x * x;
  return x * (135135.0f + s * (17325.0f + s * (378.0f + s))) / (135135.0f + s * (62370.0f + s * (3150.0f + s * 28.0f)));
}

template <int32_t kBuffers>
class TanhGelu {
 public:
  __aicore__ inline TanhGelu(GM_ADDR x, GM_ADDR y, uint32_t length) {
    share_ = length / GetBlockNum() / kBlock * kBlock;
    const uint32_t begin = share_ * GetBlockIdx();
    if (GetBlockIdx() == GetBlockNum() - 1) share_ = length - begin;
    x_.SetGlobalBuffer(reinterpret_cast<__gm__ half*>(x) + begin, share_);
    y_.SetGlobalBuffer(reinterpret_cast<__gm__ half*>(y) + begin, share_);
    pipe_.InitBuffer(in_, kBuffers, kBlock * sizeof(half));
    pipe_.InitBuffer(out_, kBuffers, kBlock * sizeof(half));
    pipe_.InitBuffer(wide_, kBlock * sizeof(float));
    pipe_.InitBuffer(inner_, kBlock * sizeof(float));
  }

  template <bool is_vector>
  __aicore__ inline void run() {
    for (uint32_t at = 0; at < share_; at += kBlock) {
      LocalTensor<half> x = in_.template AllocTensor<half>();
      DataCopy(x, x_[at], kBlock);
      in_.EnQue(x);
      x = in_.template DeQue<half>();
      LocalTensor<half> y = out_.template AllocTensor<half>();
      if (is_vector) {
        vectors(x, y);
      } else {
        numbers(x, y);
      }
      in_.FreeTensor(x);
      out_.EnQue(y);
      y = out_.template DeQue<half>();
      DataCopy(y_[at], y, kBlock);
      out_.FreeTensor(y);
    }
  }

 private:
  __aicore__ inline void numbers(const LocalTensor<half>& from, const LocalTensor<half>& to) {
    for (uint32_t i = 0; i < kBlock; ++i) {
      const float x = static_cast<float>(from.GetValue(i));
      to.SetValue(i, static_cast<half>(0.5f * x * (1.0f + fast_tanh(kSqrt2OverPi * (x + kCubic * x * x * x)))));
    }
  }

  /// x / (1 + exp(-2 u)), which is the same.
  __aicore__ inline void vectors(const LocalTensor<half>& from, const LocalTensor<half>& to) {
    const LocalTensor<float> x = wide_.template Get<float>();
    const LocalTensor<float> u = inner_.template Get<float>();
    Cast(x, from, RoundMode::CAST_NONE, kBlock);
    PipeBarrier<PIPE_V>();
    Mul(u, x, x, kBlock);
    PipeBarrier<PIPE_V>();
    Muls(u, u, -2.0f * kSqrt2OverPi * kCubic, kBlock);
    PipeBarrier<PIPE_V>();
    Adds(u, u, -2.0f * kSqrt2OverPi, kBlock);
    PipeBarrier<PIPE_V>();
    Mul(u, u, x, kBlock);
    PipeBarrier<PIPE_V>();
    Exp(u, u, kBlock);
    PipeBarrier<PIPE_V>();
    Adds(u, u, 1.0f, kBlock);
    PipeBarrier<PIPE_V>();
    Div(u, x, u, kBlock);
    PipeBarrier<PIPE_V>();
    Cast(to, u, RoundMode::CAST_RINT, kBlock);
  }

  uint32_t share_;
  TPipe pipe_;
  TQue<TPosition::VECIN, kBuffers> in_;
  TQue<TPosition::VECOUT, kBuffers> out_;
  TBuf<TPosition::VECCALC> wide_, inner_;
  GlobalTensor<half> x_, y_;
};

}  // namespace

extern "C" __global__ __vector__ void gelu_naive(GM_ADDR x, GM_ADDR y, uint32_t length) {
  TanhGelu<1>(x, y, length).run<false>();
}

extern "C" __global__ __vector__ void gelu_optimised(GM_ADDR x, GM_ADDR y, uint32_t length) {
  TanhGelu<2>(x, y, length).run<true>();
}
