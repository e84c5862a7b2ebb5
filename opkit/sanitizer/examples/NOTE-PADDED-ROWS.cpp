#include "kernel_operator.h"
using namespace AscendC;

extern "C" __global__ __aicore__ void kernel(GM_ADDR x, GM_ADDR y) {
  (void)y;
  GlobalTensor<float> input;
  input.SetGlobalBuffer((__gm__ float*)x, 50);
  LocalTensor<float> rows(TPosition::VECCALC, 0, 80);
  DataCopyPad(rows, input, {5, 10 * sizeof(float), 0, 0, 0}, {true, 0, 6, 0});
  PipeBarrier<PIPE_ALL>();
  Muls(rows, rows, 2.0f, 50);
}
