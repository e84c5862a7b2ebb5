// Kernels: rows of a table by number (embedding, index_select), and rows added to a table (their backward).
#include "kernel_operator.h"
#include "plans.h"

using namespace AscendC;
using opkit::kernels::RowsPlan;

namespace {

constexpr uint32_t kPiece = 64 * 1024;  // bytes of UB for a piece of a row

__aicore__ inline int64_t number_of(GM_ADDR numbers, int64_t i, const RowsPlan& plan) {
  int64_t number = 0;
  if (plan.index_bytes == 8) {
    GlobalTensor<int64_t> tensor;
    tensor.SetGlobalBuffer(reinterpret_cast<__gm__ int64_t*>(numbers) + i);
    number = tensor.GetValue(0);
  } else {
    GlobalTensor<int32_t> tensor;
    tensor.SetGlobalBuffer(reinterpret_cast<__gm__ int32_t*>(numbers) + i);
    number = tensor.GetValue(0);
  }
  return number < 0 ? number + plan.table_rows : number;
}

template <typename T>
__aicore__ inline GlobalTensor<T> at(GM_ADDR base, int64_t byte) {
  GlobalTensor<T> tensor;
  tensor.SetGlobalBuffer(reinterpret_cast<__gm__ T*>(base + byte));
  return tensor;
}

}  // namespace

extern "C" __global__ __aicore__ void gather_rows(GM_ADDR table, GM_ADDR numbers, GM_ADDR out, GM_ADDR plan_address) {
  const RowsPlan& plan = *reinterpret_cast<__gm__ const RowsPlan*>(plan_address);
  TPipe pipe;
  TBuf<TPosition::VECCALC> space;
  pipe.InitBuffer(space, kPiece);
  const LocalTensor<uint8_t> local = space.Get<uint8_t>();
  const int64_t cores = GetBlockNum();
  for (int64_t i = GetBlockIdx(); i < plan.count; i += cores) {
    const int64_t from = number_of(numbers, i, plan) * plan.row_bytes;
    for (uint32_t done = 0; done < plan.row_bytes; done += kPiece) {
      const uint32_t bytes = plan.row_bytes - done < kPiece ? plan.row_bytes - done : kPiece;
      PipeBarrier<PIPE_ALL>();
      DataCopyPad(local, at<uint8_t>(table, from + done), DataCopyExtParams(1, bytes, 0, 0, 0),
                  DataCopyPadExtParams<uint8_t>(false, 0, 0, 0));
      PipeBarrier<PIPE_ALL>();
      DataCopyPad(at<uint8_t>(out, i * plan.row_bytes + done), local, DataCopyExtParams(1, bytes, 0, 0, 0));
    }
  }
}

/// Each core owns some columns of the table, so the order of the additions is that of the numbers on any chip.
extern "C" __global__ __aicore__ void add_rows(GM_ADDR rows, GM_ADDR numbers, GM_ADDR table, GM_ADDR plan_address) {
  const RowsPlan& plan = *reinterpret_cast<__gm__ const RowsPlan*>(plan_address);
  TPipe pipe;
  TBuf<TPosition::VECCALC> space;
  pipe.InitBuffer(space, 2 * kPiece);
  const LocalTensor<float> sum = space.Get<float>();
  const LocalTensor<float> row = sum[kPiece / sizeof(float)];
  const int64_t columns = plan.row_bytes / sizeof(float);
  const int64_t cores = GetBlockNum();
  int64_t share = (columns + cores - 1) / cores;
  share = share < 64 ? 64 : share;
  const int64_t own_begin = GetBlockIdx() * share;
  const int64_t own_end = own_begin + share < columns ? own_begin + share : columns;
  for (int64_t i = 0; i < plan.count; ++i) {
    const int64_t number = number_of(numbers, i, plan);
    if (number == plan.skip) continue;
    for (int64_t begin = own_begin; begin < own_end; begin += kPiece / sizeof(float)) {
      const int64_t left = own_end - begin;
      const auto count = static_cast<uint32_t>(left < kPiece / 4 ? left : kPiece / 4);
      const DataCopyExtParams shape(1, count * sizeof(float), 0, 0, 0);
      const DataCopyPadExtParams<float> unpadded(false, 0, 0, 0);
      const int64_t to = number * plan.row_bytes + begin * static_cast<int64_t>(sizeof(float));
      PipeBarrier<PIPE_ALL>();
      DataCopyPad(sum, at<float>(table, to), shape, unpadded);
      DataCopyPad(row, at<float>(rows, i * plan.row_bytes + begin * static_cast<int64_t>(sizeof(float))), shape,
                  unpadded);
      PipeBarrier<PIPE_ALL>();
      Add(sum, sum, row, count);
      PipeBarrier<PIPE_ALL>();
      DataCopyPad(at<float>(table, to), sum, shape);
    }
  }
}
