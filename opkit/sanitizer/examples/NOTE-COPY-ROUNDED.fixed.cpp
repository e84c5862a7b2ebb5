#include "kernel_operator.h"
using namespace AscendC;

extern "C" __global__ __aicore__ void kernel(GM_ADDR x, GM_ADDR y) {
  (void)y;
  GlobalTensor<float> input;
  input.SetGlobalBuffer((__gm__ float*)x, 126);
  LocalTensor<float> a(TPosition::VECCALC, 0, 128);
  DataCopyPad(a, input, {1, 126 * sizeof(float), 0, 0, 0}, {false, 0, 0, 0});
}
