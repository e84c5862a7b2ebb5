#include "kernel_operator.h"
using namespace AscendC;

extern "C" __global__ __aicore__ void kernel(GM_ADDR x, GM_ADDR y) {
  GlobalTensor<float> input, output;
  input.SetGlobalBuffer(reinterpret_cast<__gm__ float*>(x), 64);
  output.SetGlobalBuffer(reinterpret_cast<__gm__ float*>(y), 64);
  LocalTensor<float> a(TPosition::VECIN, 0, 64);
  LocalTensor<float> b(TPosition::VECOUT, 256, 64);
  DataCopy(a, input, 64);
  PipeBarrier<PIPE_ALL>();
  Muls(b, a, 2.0f, 64);
  PipeBarrier<PIPE_ALL>();
  DataCopy(output, b, 64);
}
