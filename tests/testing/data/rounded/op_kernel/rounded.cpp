#include "kernel_operator.h"
#include "rounded_tiling.h"

using namespace AscendC;

/// y = x + x; every copy is rounded up to a number of elements, that of the last tile too. The buffer has as many elements
/// as an attribute says, whether that is enough or not, and lies behind another of so many bytes.
extern "C" __global__ __aicore__ void rounded(GM_ADDR x, GM_ADDR y, GM_ADDR workspace, GM_ADDR tiling) {
  KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
  REGISTER_TILING_DEFAULT(RoundedTiling);
  GET_TILING_DATA(data, tiling);
  constexpr uint32_t kTile = 8192;
  TPipe pipe;
  TBuf<TPosition::VECCALC> front, buffer;
  pipe.InitBuffer(front, data.front);
  pipe.InitBuffer(buffer, data.buffer * sizeof(half));
  LocalTensor<half> tile = buffer.Get<half>();
  for (uint32_t start = 0; start < data.length; start += kTile) {
    const uint32_t left = data.length - start;
    const uint32_t count = left < kTile ? (left + data.unit - 1) / data.unit * data.unit : kTile;
    GlobalTensor<half> from, to;
    from.SetGlobalBuffer((__gm__ half*)x + start);
    to.SetGlobalBuffer((__gm__ half*)y + start);
    DataCopy(tile, from, count);
    PipeBarrier<PIPE_ALL>();
    Add(tile, tile, tile, count);
    PipeBarrier<PIPE_ALL>();
    DataCopy(to, tile, count);
    PipeBarrier<PIPE_ALL>();
  }
}
