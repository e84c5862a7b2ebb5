// Kernel: rows of C = A B where A is sparse: a row of B times a number for each element of A that is there, summed in
// float32. Which core has which rows, and in which order, the host has balanced.
#include "kernel_operator.h"

using namespace AscendC;

namespace {

constexpr uint32_t kPart = 4096;      // columns of C at a time
constexpr uint32_t kElements = 1024;  // of a row of A at a time
constexpr int32_t kDepth = 4;         // rows of B under way

template <typename T>
__aicore__ inline GlobalTensor<T> global(GM_ADDR address) {
  GlobalTensor<T> tensor;
  tensor.SetGlobalBuffer(reinterpret_cast<__gm__ T*>(address));
  return tensor;
}

class SparseRows {
 public:
  __aicore__ inline SparseRows(GM_ADDR row_starts, GM_ADDR columns, GM_ADDR values, GM_ADDR b, GM_ADDR c, uint32_t n)
      : row_starts_(global<int32_t>(row_starts)),
        columns_(global<int32_t>(columns)),
        values_(global<half>(values)),
        b_(global<half>(b)),
        c_(global<half>(c)),
        n_(n) {
    const uint32_t part = n < kPart ? n : kPart;
    pipe_.InitBuffer(rows_of_b_, kDepth, part * sizeof(half));
    pipe_.InitBuffer(results_, 2, part * sizeof(half));
    pipe_.InitBuffer(sums_, part * sizeof(float));
    pipe_.InitBuffer(indices_, kElements * sizeof(int32_t) + 64);
    pipe_.InitBuffer(numbers_, kElements * sizeof(half) + 64);
  }

  __aicore__ inline void row(int32_t row) {
    const int32_t begin = row_starts_.GetValue(row);
    const int32_t end = row_starts_.GetValue(row + 1);
    for (uint32_t column = 0; column < n_; column += kPart) {
      const uint32_t width = n_ - column < kPart ? n_ - column : kPart;
      const LocalTensor<float> sums = sums_.Get<float>();
      Duplicate(sums, 0.0f, static_cast<int32_t>(width));
      PipeBarrier<PIPE_V>();
      for (int32_t at = begin; at < end; at += kElements) {
        add(at, end - at < static_cast<int32_t>(kElements) ? end - at : kElements, column, width);
      }
      LocalTensor<half> result = results_.AllocTensor<half>();
      PipeBarrier<PIPE_V>();
      Cast(result, sums, RoundMode::CAST_RINT, width);
      results_.EnQue(result);
      result = results_.DeQue<half>();
      DataCopy(c_[static_cast<uint64_t>(row) * n_ + column], result, width);
      results_.FreeTensor(result);
    }
  }

 private:
  __aicore__ inline void add(int32_t at, uint32_t count, uint32_t column, uint32_t width) {
    const LocalTensor<int32_t> indices = indices_.Get<int32_t>();
    const LocalTensor<half> numbers = numbers_.Get<half>();
    const LocalTensor<float> sums = sums_.Get<float>();
    SetFlag<HardEvent::S_MTE2>(EVENT_ID0);
    WaitFlag<HardEvent::S_MTE2>(EVENT_ID0);
    DataCopyPad(indices, columns_[at], DataCopyExtParams(1, count * sizeof(int32_t), 0, 0, 0),
                DataCopyPadExtParams<int32_t>(false, 0, 0, 0));
    DataCopyPad(numbers, values_[at], DataCopyExtParams(1, count * sizeof(half), 0, 0, 0),
                DataCopyPadExtParams<half>(false, 0, 0, 0));
    SetFlag<HardEvent::MTE2_S>(EVENT_ID0);
    WaitFlag<HardEvent::MTE2_S>(EVENT_ID0);
    const uint32_t ahead = count < kDepth - 1 ? count : kDepth - 1;
    for (uint32_t i = 0; i < ahead; ++i) copy_in(indices.GetValue(i), column, width);
    for (uint32_t i = 0; i < count; ++i) {
      if (i + ahead < count) copy_in(indices.GetValue(i + ahead), column, width);
      const LocalTensor<half> row = rows_of_b_.DeQue<half>();
      Axpy(sums, row, numbers.GetValue(i), static_cast<int32_t>(width));
      rows_of_b_.FreeTensor(row);
      PipeBarrier<PIPE_V>();
    }
  }

  __aicore__ inline void copy_in(int32_t index, uint32_t column, uint32_t width) {
    LocalTensor<half> row = rows_of_b_.AllocTensor<half>();
    DataCopy(row, b_[static_cast<uint64_t>(index) * n_ + column], width);
    rows_of_b_.EnQue(row);
  }

  GlobalTensor<int32_t> row_starts_, columns_;
  GlobalTensor<half> values_, b_, c_;
  uint32_t n_;
  TPipe pipe_;
  TQue<TPosition::VECIN, kDepth> rows_of_b_;
  TQue<TPosition::VECOUT, 2> results_;
  TBuf<TPosition::VECCALC> sums_, indices_, numbers_;
};

}  // namespace

extern "C" __global__ __vector__ void sparse_direct(GM_ADDR row_starts, GM_ADDR columns, GM_ADDR values, GM_ADDR b,
                                                    GM_ADDR c, GM_ADDR starts, GM_ADDR order, GM_ADDR plan) {
  SparseRows rows(row_starts, columns, values, b, c, static_cast<uint32_t>(global<int32_t>(plan).GetValue(0)));
  const GlobalTensor<int32_t> own = global<int32_t>(starts);
  const int32_t end = own.GetValue(GetBlockIdx() + 1);
  for (int32_t i = own.GetValue(GetBlockIdx()); i < end; ++i) rows.row(global<int32_t>(order).GetValue(i));
}
