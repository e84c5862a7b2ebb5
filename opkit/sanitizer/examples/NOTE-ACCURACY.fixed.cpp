#include "kernel_operator.h"
using namespace AscendC;

extern "C" __global__ __aicore__ void kernel(GM_ADDR x, GM_ADDR y) {
  (void)x, (void)y;
  LocalTensor<float> a(TPosition::VECCALC, 0, 64), one(TPosition::VECCALC, 256, 64);
  Duplicate(a, 4.0f, 64);
  Duplicate(one, 1.0f, 64);
  Sqrt(a, a, 64);
  Div(a, one, a, 64);
}
