// Layer norm and RMS norm of rows of halves, sums in float32: row by row with scalar loops, row by row with vector
// instructions, and several rows a tile with everything under way at once.
#include "kernel_operator.h"

using namespace AscendC;

namespace {

constexpr uint32_t kLanes = 64;

struct Norm {
  uint32_t rows, width;
  float epsilon;
  bool has_mean;  ///< layer norm; else RMS norm, which has no bias either
};

/// One row at a time, one buffer. kIsScalar: sums element by element.
template <bool kIsScalar>
class RowByRow {
 public:
  __aicore__ inline RowByRow(GM_ADDR x, GM_ADDR weight, GM_ADDR bias, GM_ADDR y, const Norm& norm) : norm_(norm) {
    x_.SetGlobalBuffer(reinterpret_cast<__gm__ half*>(x));
    weight_.SetGlobalBuffer(reinterpret_cast<__gm__ half*>(weight));
    bias_.SetGlobalBuffer(reinterpret_cast<__gm__ half*>(bias));
    y_.SetGlobalBuffer(reinterpret_cast<__gm__ half*>(y));
    pipe_.InitBuffer(in_, 1, norm.width * sizeof(half));
    pipe_.InitBuffer(parameters_, 1, norm.width * sizeof(half));
    pipe_.InitBuffer(out_, 1, norm.width * sizeof(half));
    pipe_.InitBuffer(wide_, norm.width * sizeof(float));
    pipe_.InitBuffer(other_, norm.width * sizeof(float));
    pipe_.InitBuffer(sums_, 1024);
  }

  __aicore__ inline void run() {
    for (uint32_t row = GetBlockIdx(); row < norm_.rows; row += GetBlockNum()) one(row);
  }

 private:
  __aicore__ inline void one(uint32_t row) {
    const int32_t width = static_cast<int32_t>(norm_.width);
    const LocalTensor<float> wide = wide_.Get<float>();
    const LocalTensor<float> other = other_.Get<float>();
    LocalTensor<half> x = in_.AllocTensor<half>();
    DataCopy(x, x_[static_cast<uint64_t>(row) * norm_.width], norm_.width);
    in_.EnQue(x);
    x = in_.DeQue<half>();
    Cast(wide, x, RoundMode::CAST_NONE, norm_.width);
    in_.FreeTensor(x);
    PipeBarrier<PIPE_V>();
    if (norm_.has_mean) {
      Adds(wide, wide, -sum(wide) / static_cast<float>(width), width);
      PipeBarrier<PIPE_V>();
    }
    Mul(other, wide, wide, width);
    PipeBarrier<PIPE_V>();
    const float variance = sum(other) / static_cast<float>(width);
    Duplicate(other, variance + norm_.epsilon, 8);
    PipeBarrier<PIPE_V>();
    Sqrt(other, other, 8);
    to_scalar();
    const float deviation = other.GetValue(0);
    to_vector();
    Muls(wide, wide, 1.0f / deviation, width);
    parameter(weight_);
    Mul(wide, wide, other, width);
    PipeBarrier<PIPE_V>();
    if (norm_.has_mean) {
      parameter(bias_);
      Add(wide, wide, other, width);
      PipeBarrier<PIPE_V>();
    }
    LocalTensor<half> y = out_.AllocTensor<half>();
    Cast(y, wide, RoundMode::CAST_RINT, norm_.width);
    out_.EnQue(y);
    y = out_.DeQue<half>();
    DataCopy(y_[static_cast<uint64_t>(row) * norm_.width], y, norm_.width);
    out_.FreeTensor(y);
  }

  /// Read again for each row, into other_.
  __aicore__ inline void parameter(const GlobalTensor<half>& from) {
    LocalTensor<half> narrow = parameters_.AllocTensor<half>();
    DataCopy(narrow, from, norm_.width);
    parameters_.EnQue(narrow);
    narrow = parameters_.DeQue<half>();
    Cast(other_.Get<float>(), narrow, RoundMode::CAST_NONE, norm_.width);
    parameters_.FreeTensor(narrow);
    PipeBarrier<PIPE_V>();
  }

  __aicore__ inline float sum(const LocalTensor<float>& values) {
    float total = 0;
    if (kIsScalar) {
      to_scalar();
      for (uint32_t i = 0; i < norm_.width; ++i) total += values.GetValue(i);
      to_vector();
      return total;
    }
    const LocalTensor<float> sums = sums_.Get<float>();
    const int32_t repeats = static_cast<int32_t>(norm_.width / kLanes);
    WholeReduceSum(sums[64], values, static_cast<int32_t>(kLanes), repeats, 1, 1, 8);
    PipeBarrier<PIPE_V>();
    WholeReduceSum(sums, sums[64], repeats, 1, 1, 1, 8);
    to_scalar();
    total = sums.GetValue(0);
    to_vector();
    return total;
  }

  __aicore__ inline void to_scalar() {
    SetFlag<HardEvent::V_S>(EVENT_ID0);
    WaitFlag<HardEvent::V_S>(EVENT_ID0);
  }
  __aicore__ inline void to_vector() {
    SetFlag<HardEvent::S_V>(EVENT_ID0);
    WaitFlag<HardEvent::S_V>(EVENT_ID0);
  }

  const Norm norm_;
  TPipe pipe_;
  TQue<TPosition::VECIN, 1> in_, parameters_;
  TQue<TPosition::VECOUT, 1> out_;
  TBuf<TPosition::VECCALC> wide_, other_, sums_;
  GlobalTensor<half> x_, weight_, bias_, y_;
};

/// Several rows a tile, two buffers; parameters read once; sums and roots of all rows by one instruction each, so no
/// number goes through the scalar unit.
class RowsAtOnce {
 public:
  __aicore__ inline RowsAtOnce(GM_ADDR x, GM_ADDR weight, GM_ADDR bias, GM_ADDR y, const Norm& norm) : norm_(norm) {
    const uint32_t share = (norm.rows + GetBlockNum() - 1) / GetBlockNum();
    first_ = share * GetBlockIdx() < norm.rows ? share * GetBlockIdx() : norm.rows;
    end_ = first_ + share < norm.rows ? first_ + share : norm.rows;
    tile_ = kTile / norm.width;
    if (tile_ > kMostRows) tile_ = kMostRows;
    if (tile_ > share) tile_ = share;
    x_.SetGlobalBuffer(reinterpret_cast<__gm__ half*>(x));
    weight_.SetGlobalBuffer(reinterpret_cast<__gm__ half*>(weight));
    bias_.SetGlobalBuffer(reinterpret_cast<__gm__ half*>(bias));
    y_.SetGlobalBuffer(reinterpret_cast<__gm__ half*>(y));
    pipe_.InitBuffer(parameters_, 1, norm.width * sizeof(half));
    pipe_.InitBuffer(in_, 2, tile_ * norm.width * sizeof(half));
    pipe_.InitBuffer(out_, 2, tile_ * norm.width * sizeof(half));
    pipe_.InitBuffer(wide_, tile_ * norm.width * sizeof(float));
    pipe_.InitBuffer(other_, tile_ * norm.width * sizeof(float));
    pipe_.InitBuffer(weights_, norm.width * sizeof(float));
    pipe_.InitBuffer(biases_, norm.has_mean ? norm.width * sizeof(float) : 32);
    pipe_.InitBuffer(numbers_, 4096);
    pipe_.InitBuffer(spread_, kMostRows * 32);
  }

  __aicore__ inline void run() {
    if (first_ >= end_) return;
    copy_in(first_);
    read(weight_, weights_.Get<float>());
    if (norm_.has_mean) read(bias_, biases_.Get<float>());
    for (uint32_t row = first_; row < end_; row += tile_) {
      if (row + tile_ < end_) copy_in(row + tile_);
      compute(row, end_ - row < tile_ ? end_ - row : tile_);
    }
  }

 private:
  static constexpr uint32_t kTile = 8192;  ///< elements
  static constexpr uint32_t kMostRows = 8;

  __aicore__ inline void copy_in(uint32_t row) {
    const uint32_t rows = end_ - row < tile_ ? end_ - row : tile_;
    LocalTensor<half> x = in_.AllocTensor<half>();
    DataCopy(x, x_[static_cast<uint64_t>(row) * norm_.width], rows * norm_.width);
    in_.EnQue(x);
  }

  __aicore__ inline void read(const GlobalTensor<half>& from, const LocalTensor<float>& to) {
    LocalTensor<half> narrow = parameters_.AllocTensor<half>();
    DataCopy(narrow, from, norm_.width);
    parameters_.EnQue(narrow);
    narrow = parameters_.DeQue<half>();
    Cast(to, narrow, RoundMode::CAST_NONE, norm_.width);
    parameters_.FreeTensor(narrow);
  }

  __aicore__ inline void compute(uint32_t row, uint32_t rows) {
    const uint32_t count = rows * norm_.width;
    const LocalTensor<float> wide = wide_.Get<float>();
    const LocalTensor<float> other = other_.Get<float>();
    const LocalTensor<float> spread = spread_.Get<float>();
    const float part = 1.0f / static_cast<float>(norm_.width);
    LocalTensor<half> x = in_.DeQue<half>();
    Cast(wide, x, RoundMode::CAST_NONE, count);
    in_.FreeTensor(x);
    PipeBarrier<PIPE_V>();
    if (norm_.has_mean) {
      const LocalTensor<float> mean = sums(wide, rows);
      Muls(mean, mean, -part, static_cast<int32_t>(rows));
      PipeBarrier<PIPE_V>();
      spread_out(mean, rows);
      with_numbers<true>(wide, spread, rows);
    }
    Mul(other, wide, wide, static_cast<int32_t>(count));
    PipeBarrier<PIPE_V>();
    const LocalTensor<float> square = sums(other, rows);
    Muls(square, square, part, static_cast<int32_t>(rows));
    PipeBarrier<PIPE_V>();
    Adds(square, square, norm_.epsilon, static_cast<int32_t>(rows));
    PipeBarrier<PIPE_V>();
    Sqrt(square, square, static_cast<int32_t>(rows));
    Duplicate(other, 1.0f, static_cast<int32_t>(kMostRows));
    PipeBarrier<PIPE_V>();
    Div(square, other, square, static_cast<int32_t>(rows));
    PipeBarrier<PIPE_V>();
    spread_out(square, rows);
    with_numbers<false>(wide, spread, rows);
    for (uint32_t i = 0; i < rows; ++i)
      Mul(wide[i * norm_.width], wide[i * norm_.width], weights_.Get<float>(), static_cast<int32_t>(norm_.width));
    PipeBarrier<PIPE_V>();
    if (norm_.has_mean) {
      for (uint32_t i = 0; i < rows; ++i)
        Add(wide[i * norm_.width], wide[i * norm_.width], biases_.Get<float>(), static_cast<int32_t>(norm_.width));
      PipeBarrier<PIPE_V>();
    }
    LocalTensor<half> y = out_.AllocTensor<half>();
    Cast(y, wide, RoundMode::CAST_RINT, count);
    out_.EnQue(y);
    y = out_.DeQue<half>();
    DataCopy(y_[static_cast<uint64_t>(row) * norm_.width], y, count);
    out_.FreeTensor(y);
  }

  /// One sum a row, side by side.
  __aicore__ inline LocalTensor<float> sums(const LocalTensor<float>& values, uint32_t rows) {
    const LocalTensor<float> numbers = numbers_.Get<float>();
    const int32_t repeats = static_cast<int32_t>(norm_.width / kLanes);
    WholeReduceSum(numbers[64], values, static_cast<int32_t>(kLanes), repeats * static_cast<int32_t>(rows), 1, 1, 8);
    PipeBarrier<PIPE_V>();
    WholeReduceSum(numbers, numbers[64], repeats, static_cast<int32_t>(rows), 1, 1, repeats / 8);
    PipeBarrier<PIPE_V>();
    return numbers;
  }

  __aicore__ inline void spread_out(const LocalTensor<float>& numbers, uint32_t rows) {
    Brcb(spread_.Get<float>(), numbers, static_cast<uint8_t>((rows + 7) / 8), BrcbRepeatParams(1, 8));
    PipeBarrier<PIPE_V>();
  }

  /// Each row plus or times its number, of which a block holds eight.
  template <bool is_sum>
  __aicore__ inline void with_numbers(const LocalTensor<float>& values, const LocalTensor<float>& spread,
                                      uint32_t rows) {
    const BinaryRepeatParams strides(1, 1, 0, 8, 8, 0);
    const uint8_t repeats = static_cast<uint8_t>(norm_.width / kLanes);
    for (uint32_t i = 0; i < rows; ++i) {
      if (is_sum) {
        Add(values[i * norm_.width], values[i * norm_.width], spread[i * 8], static_cast<uint64_t>(kLanes), repeats,
            strides);
      } else {
        Mul(values[i * norm_.width], values[i * norm_.width], spread[i * 8], static_cast<uint64_t>(kLanes), repeats,
            strides);
      }
    }
    PipeBarrier<PIPE_V>();
  }

  const Norm norm_;
  uint32_t first_, end_, tile_;
  TPipe pipe_;
  TQue<TPosition::VECIN, 1> parameters_;
  TQue<TPosition::VECIN, 2> in_;
  TQue<TPosition::VECOUT, 2> out_;
  TBuf<TPosition::VECCALC> wide_, other_, weights_, biases_, numbers_, spread_;
  GlobalTensor<half> x_, weight_, bias_, y_;
};

}  // namespace

extern "C" __global__ __vector__ void layer_norm_naive(GM_ADDR x, GM_ADDR weight, GM_ADDR bias, GM_ADDR y,
                                                       uint32_t rows, uint32_t width, float epsilon) {
  RowByRow<true>(x, weight, bias, y, {rows, width, epsilon, true}).run();
}

extern "C" __global__ __vector__ void layer_norm_optimised(GM_ADDR x, GM_ADDR weight, GM_ADDR bias, GM_ADDR y,
                                                           uint32_t rows, uint32_t width, float epsilon) {
  RowsAtOnce(x, weight, bias, y, {rows, width, epsilon, true}).run();
}

extern "C" __global__ __vector__ void rms_norm_rows(GM_ADDR x, GM_ADDR weight, GM_ADDR y, uint32_t rows, uint32_t width,
                                                    float epsilon) {
  RowByRow<false>(x, weight, weight, y, {rows, width, epsilon, false}).run();
}

extern "C" __global__ __vector__ void rms_norm_vector(GM_ADDR x, GM_ADDR weight, GM_ADDR y, uint32_t rows,
                                                      uint32_t width, float epsilon) {
  RowsAtOnce(x, weight, weight, y, {rows, width, epsilon, false}).run();
}
