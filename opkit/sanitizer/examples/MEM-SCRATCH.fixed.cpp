#include "kernel_operator.h"
using namespace AscendC;

extern "C" __global__ __aicore__ void kernel(GM_ADDR x, GM_ADDR y) {
  (void)x, (void)y;
  LocalTensor<float> top(TPosition::VECCALC, 183 * 1024, 64), a(TPosition::VECCALC, 0, 64);
  LocalTensor<uint8_t> mask(TPosition::VECCALC, 256, 32);
  Duplicate(top, 1.0f, 64);
  Duplicate(a, 2.0f, 64);
  CompareScalar(mask, a, 1.0f, CMPMODE::GT, 64);
  Select(a, mask, a, 0.0f, SELMODE::VSEL_TENSOR_SCALAR_MODE, 64);
  Add(a, a, top, 64);
}
