#include "kernel_operator.h"
using namespace AscendC;

extern "C" __global__ __aicore__ void kernel(GM_ADDR x, GM_ADDR y) {
  GlobalTensor<float> input, output;
  input.SetGlobalBuffer(reinterpret_cast<__gm__ float*>(x), 64);
  output.SetGlobalBuffer(reinterpret_cast<__gm__ float*>(y), 64);
  LocalTensor<float> a(TPosition::VECIN, 0, 64);
  DataCopy(a, input, 48);
  PipeBarrier<PIPE_ALL>();
  Adds(a, a, 1.0f, 48);
  PipeBarrier<PIPE_ALL>();
  DataCopy(output, a, 48);
}
