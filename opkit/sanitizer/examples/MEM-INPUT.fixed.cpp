#include "kernel_operator.h"
using namespace AscendC;

extern "C" __global__ __aicore__ void kernel(GM_ADDR x, GM_ADDR y) {
  GlobalTensor<float> input, output;
  input.SetGlobalBuffer(reinterpret_cast<__gm__ float*>(x), 64);
  output.SetGlobalBuffer(reinterpret_cast<__gm__ float*>(y), 64);
  LocalTensor<float> tile(TPosition::VECCALC, 0, 64);
  DataCopy(tile, input, 64);
  PipeBarrier<PIPE_ALL>();
  Muls(tile, tile, 2.0f, 64);
  PipeBarrier<PIPE_ALL>();
  DataCopy(output, tile, 64);
}
