// y = x convolved with 64 filters of 3 x 3 over 3 channels, one pixel of zeros around; halves, sums in float32. Images
// are (channels, 224, 224). Once with nothing reused, once with 64 channels as lanes and every pixel read three times
// in all.
#include "kernel_operator.h"

using namespace AscendC;

namespace {

constexpr uint32_t kSize = 224;  // rows and columns of an image
constexpr uint32_t kIn = 3;      // channels
constexpr uint32_t kOut = 64;
constexpr uint32_t kTaps = kIn * 9;  // weights of a filter
constexpr uint64_t kImage = static_cast<uint64_t>(kSize) * kSize;

/// For every row of every filter all 27 rows of pixels are read anew.
class Naive {
 public:
  __aicore__ inline Naive(GM_ADDR x, GM_ADDR w, GM_ADDR y) {
    x_.SetGlobalBuffer(reinterpret_cast<__gm__ half*>(x), kIn * kImage);
    w_.SetGlobalBuffer(reinterpret_cast<__gm__ half*>(w), kOut * kTaps);
    y_.SetGlobalBuffer(reinterpret_cast<__gm__ half*>(y), kOut * kImage);
    pipe_.InitBuffer(in_, 1, kSize * sizeof(half));
    pipe_.InitBuffer(out_, 1, kSize * sizeof(half));
    pipe_.InitBuffer(sums_, kSize * sizeof(float));
  }

  __aicore__ inline void run() {
    for (uint32_t item = GetBlockIdx(); item < kOut * kSize; item += GetBlockNum()) row(item / kSize, item % kSize);
  }

 private:
  __aicore__ inline void row(uint32_t channel, uint32_t row) {
    const LocalTensor<float> sums = sums_.Get<float>();
    Duplicate(sums, 0.0f, static_cast<int32_t>(kSize));
    PipeBarrier<PIPE_V>();
    for (uint32_t tap = 0; tap < kTaps; ++tap) {
      const int32_t from = static_cast<int32_t>(row + tap % 9 / 3) - 1;
      if (from < 0 || from >= static_cast<int32_t>(kSize)) continue;
      const uint32_t shift = tap % 3;
      const uint64_t begin = tap / 9 * kImage + from * kSize + (shift == 2 ? 1 : 0);
      const uint32_t count = shift == 1 ? kSize : kSize - 1;
      LocalTensor<half> pixels = in_.AllocTensor<half>();
      DataCopyPad(pixels, x_[begin], DataCopyExtParams(1, count * sizeof(half), 0, 0, 0),
                  DataCopyPadExtParams<half>(true, shift == 0 ? 1 : 0, shift == 2 ? 1 : 0, half(0.0f)));
      in_.EnQue(pixels);
      pixels = in_.DeQue<half>();
      Axpy(sums, pixels, w_.GetValue(channel * kTaps + tap), static_cast<int32_t>(kSize));
      PipeBarrier<PIPE_V>();
      in_.FreeTensor(pixels);
    }
    LocalTensor<half> result = out_.AllocTensor<half>();
    Cast(result, sums, RoundMode::CAST_RINT, kSize);
    out_.EnQue(result);
    result = out_.DeQue<half>();
    DataCopy(y_[channel * kImage + row * kSize], result, kSize);
    out_.FreeTensor(result);
  }

  TPipe pipe_;
  TQue<TPosition::VECIN, 1> in_;
  TQue<TPosition::VECOUT, 1> out_;
  TBuf<TPosition::VECCALC> sums_;
  GlobalTensor<half> x_, w_, y_;
};

/// Half a row at a time for all filters: a repeat is one pixel of 64 channels. Pixels are spread to blocks of eight, so
/// that the three shifts of a row are three places to begin.
class Optimised {
 public:
  __aicore__ inline Optimised(GM_ADDR x, GM_ADDR w, GM_ADDR y) {
    x_.SetGlobalBuffer(reinterpret_cast<__gm__ half*>(x), kIn * kImage);
    w_.SetGlobalBuffer(reinterpret_cast<__gm__ half*>(w), kOut * kTaps);
    y_.SetGlobalBuffer(reinterpret_cast<__gm__ half*>(y), kOut * kImage);
    pipe_.InitBuffer(in_, 2, kIn * 3 * kRow * sizeof(half));
    pipe_.InitBuffer(out_, 2, kOut * kHalf * sizeof(half));
    pipe_.InitBuffer(sums_, kOut * kHalf * sizeof(float));
    pipe_.InitBuffer(narrow_, kOut * kHalf * sizeof(half));
    pipe_.InitBuffer(wide_, kRow * sizeof(float));
    pipe_.InitBuffer(spread_, kIn * 3 * kRow * 8 * sizeof(float));
    pipe_.InitBuffer(weights_, 32 * kOut * sizeof(float));
  }

  __aicore__ inline void run() {
    read_weights();
    const uint32_t items = 2 * kSize;
    const uint32_t share = (items + GetBlockNum() - 1) / GetBlockNum();
    const uint32_t begin = share * GetBlockIdx();
    const uint32_t end = begin + share < items ? begin + share : items;
    if (begin >= end) return;
    copy_in(begin);
    for (uint32_t item = begin; item < end; ++item) {
      if (item + 1 < end) copy_in(item + 1);
      compute(item);
    }
  }

 private:
  static constexpr uint32_t kHalf = kSize / 2;  ///< pixels at a time
  static constexpr uint32_t kRow = 128;         ///< with one more on either side, and up to full blocks

  /// (filter, weight) to (weight, filter), as floats.
  __aicore__ inline void read_weights() {
    LocalTensor<half> rows = narrow_.Get<half>();
    LocalTensor<half> turned = rows[kOut * 32];
    DataCopyPad(rows, w_, DataCopyExtParams(kOut, kTaps * sizeof(half), 0, 0, 0),
                DataCopyPadExtParams<half>(true, 0, 5, half(0.0f)));
    SetFlag<HardEvent::MTE2_V>(EVENT_ID0);
    WaitFlag<HardEvent::MTE2_V>(EVENT_ID0);
    for (uint32_t filters = 0; filters < kOut; filters += 16) {
      for (uint32_t taps = 0; taps < 32; taps += 16) {
        LocalTensor<half> from[16], to[16];
        for (uint32_t i = 0; i < 16; ++i) {
          from[i] = rows[(filters + i) * 32 + taps];
          to[i] = turned[(taps + i) * kOut + filters];
        }
        TransDataTo5HD<half>(to, from, TransDataTo5HDParams(false, false, 1, 0, 0));
      }
    }
    PipeBarrier<PIPE_V>();
    Cast(weights_.Get<float>(), turned, RoundMode::CAST_NONE, 32 * kOut);
    PipeBarrier<PIPE_V>();
  }

  /// Whether one of the three rows around a row of y is one of the image.
  __aicore__ inline bool is_inside(int32_t row, uint32_t which) const {
    const int32_t from = row + static_cast<int32_t>(which) - 1;
    return from >= 0 && from < static_cast<int32_t>(kSize);
  }

  /// Three rows of three channels, columns -1 to 112 of the half, with zeros outside the image.
  __aicore__ inline void copy_in(uint32_t item) {
    const int32_t row = static_cast<int32_t>(item / 2);
    const bool is_right = item % 2 != 0;
    LocalTensor<half> pixels = in_.AllocTensor<half>();
    for (uint32_t channel = 0; channel < kIn; ++channel) {
      for (uint32_t i = 0; i < 3; ++i) {
        if (!is_inside(row, i)) continue;
        const int32_t from = row + static_cast<int32_t>(i) - 1;
        // The left half begins with a zero, the right one ends with one.
        const uint64_t begin = channel * kImage + from * kSize + (is_right ? kHalf - 1 : 0);
        DataCopyPad(pixels[(channel * 3 + i) * kRow], x_[begin],
                    DataCopyExtParams(1, (kHalf + 1) * sizeof(half), 0, 0, 0),
                    DataCopyPadExtParams<half>(true, is_right ? 0 : 1, is_right ? 1 : 0, half(0.0f)));
      }
    }
    in_.EnQue(pixels);
  }

  __aicore__ inline void compute(uint32_t item) {
    const int32_t row = static_cast<int32_t>(item / 2);
    const LocalTensor<float> sums = sums_.Get<float>();
    const LocalTensor<float> spread = spread_.Get<float>();
    const LocalTensor<float> wide = wide_.Get<float>();
    const LocalTensor<half> narrow = narrow_.Get<half>();
    LocalTensor<half> pixels = in_.DeQue<half>();
    for (uint32_t line = 0; line < kIn * 3; ++line) {
      if (!is_inside(row, line % 3)) continue;
      Cast(wide, pixels[line * kRow], RoundMode::CAST_NONE, kRow);
      PipeBarrier<PIPE_V>();
      Brcb(spread[line * kRow * 8], wide, static_cast<uint8_t>(kRow / 8), BrcbRepeatParams(1, 8));
      PipeBarrier<PIPE_V>();
    }
    in_.FreeTensor(pixels);
    Duplicate(sums, 0.0f, static_cast<int32_t>(kOut * kHalf));
    PipeBarrier<PIPE_V>();
    for (uint32_t tap = 0; tap < kTaps; ++tap) {
      if (!is_inside(row, tap % 9 / 3)) continue;
      MulAddDst(sums, spread[(tap / 3 * kRow + tap % 3) * 8], weights_.Get<float>()[tap * kOut],
                static_cast<uint64_t>(64), static_cast<uint8_t>(kHalf), BinaryRepeatParams(1, 0, 1, 8, 1, 0));
      PipeBarrier<PIPE_V>();
    }
    Cast(narrow, sums, RoundMode::CAST_RINT, kOut * kHalf);
    PipeBarrier<PIPE_V>();
    LocalTensor<half> result = out_.AllocTensor<half>();
    for (uint32_t channels = 0; channels < kOut; channels += 16) {
      LocalTensor<half> from_rows[16], to_rows[16];
      for (uint32_t i = 0; i < 16; ++i) {
        from_rows[i] = narrow[i * kOut + channels];
        to_rows[i] = result[(channels + i) * kHalf];
      }
      TransDataTo5HD<half>(to_rows, from_rows, TransDataTo5HDParams(false, false, kHalf / 16, 1, kOut));
    }
    out_.EnQue(result);
    result = out_.DeQue<half>();
    const uint16_t gap = static_cast<uint16_t>((kImage - kHalf) * sizeof(half) / 32);
    DataCopy(y_[static_cast<uint64_t>(item) * kHalf], result, DataCopyParams(kOut, kHalf * sizeof(half) / 32, 0, gap));
    out_.FreeTensor(result);
  }

  TPipe pipe_;
  TQue<TPosition::VECIN, 2> in_;
  TQue<TPosition::VECOUT, 2> out_;
  TBuf<TPosition::VECCALC> sums_, narrow_, wide_, spread_, weights_;
  GlobalTensor<half> x_, w_, y_;
};

}  // namespace

extern "C" __global__ __vector__ void conv2d_naive(GM_ADDR x, GM_ADDR w, GM_ADDR y) { Naive(x, w, y).run(); }

extern "C" __global__ __vector__ void conv2d_optimised(GM_ADDR x, GM_ADDR w, GM_ADDR y) { Optimised(x, w, y).run(); }
