#include "kernel_operator.h"
using namespace AscendC;

extern "C" __global__ __aicore__ void kernel(GM_ADDR x, GM_ADDR y) {
  (void)y;
  GlobalTensor<float> input;
  input.SetGlobalBuffer((__gm__ float*)x, 64);
  LocalTensor<float> a(TPosition::VECCALC, 0, 64);
  DataCopy(a, input, 64);
  DataCopy(a[32], input, 32);
}
