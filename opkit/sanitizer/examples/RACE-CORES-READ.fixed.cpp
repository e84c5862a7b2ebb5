#include "kernel_operator.h"
using namespace AscendC;

extern "C" __global__ __aicore__ void kernel(GM_ADDR x, GM_ADDR y) {
  GlobalTensor<float> shared, output;
  shared.SetGlobalBuffer(reinterpret_cast<__gm__ float*>(x), 16);
  output.SetGlobalBuffer(reinterpret_cast<__gm__ float*>(y), 16);
  LocalTensor<float> a(TPosition::VECIN, 0, 8);
  const int mine = GetBlockIdx();
  Duplicate(a, 1.0f, 8);
  PipeBarrier<PIPE_ALL>();
  DataCopy(shared[mine * 8], a, 8);
  SyncAll();
  PipeBarrier<PIPE_ALL>();
  DataCopy(a, shared[(1 - mine) * 8], 8);
  PipeBarrier<PIPE_ALL>();
  DataCopy(output[mine * 8], a, 8);
}
