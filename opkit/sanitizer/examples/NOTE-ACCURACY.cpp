#include "kernel_operator.h"
using namespace AscendC;

extern "C" __global__ __aicore__ void kernel(GM_ADDR x, GM_ADDR y) {
  (void)x, (void)y;
  LocalTensor<float> a(TPosition::VECCALC, 0, 64);
  Duplicate(a, 4.0f, 64);
  Rsqrt(a, a, 64);
}
