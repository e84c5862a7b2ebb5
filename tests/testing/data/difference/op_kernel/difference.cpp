#include "difference_tiling.h"
#include "kernel_operator.h"

using namespace AscendC;

/// out = x * y - z, each step rounded to half, tile by tile.
extern "C" __global__ __aicore__ void difference(GM_ADDR x, GM_ADDR y, GM_ADDR z, GM_ADDR out, GM_ADDR workspace,
                                                 GM_ADDR tiling) {
  KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
  REGISTER_TILING_DEFAULT(DifferenceTiling);
  GET_TILING_DATA(data, tiling);
  constexpr uint32_t kTile = 4096;
  TPipe pipe;
  TBuf<TPosition::VECCALC> buffer;
  pipe.InitBuffer(buffer, 3 * kTile * sizeof(half));
  for (uint32_t start = 0; start < data.length; start += kTile) {
    const uint32_t count = data.length - start < kTile ? data.length - start : kTile;
    const DataCopyExtParams copy{1, static_cast<uint32_t>(count * sizeof(half)), 0, 0, 0};
    LocalTensor<half> parts[3];
    GM_ADDR addresses[3] = {x, y, z};
    for (uint32_t i = 0; i < 3; ++i) {
      GlobalTensor<half> from;
      from.SetGlobalBuffer((__gm__ half*)addresses[i] + start, count);
      parts[i] = buffer.Get<half>()[i * kTile];
      DataCopyPad(parts[i], from, copy, DataCopyPadExtParams<half>{false, 0, 0, 0});
    }
    PipeBarrier<PIPE_ALL>();
    Mul(parts[0], parts[0], parts[1], count);
    PipeBarrier<PIPE_V>();
    Sub(parts[0], parts[0], parts[2], count);
    PipeBarrier<PIPE_ALL>();
    GlobalTensor<half> to;
    to.SetGlobalBuffer((__gm__ half*)out + start, count);
    DataCopyPad(to, parts[0], copy);
    PipeBarrier<PIPE_ALL>();
  }
}
