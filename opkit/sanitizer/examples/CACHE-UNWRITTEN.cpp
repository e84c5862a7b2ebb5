#include "kernel_operator.h"
using namespace AscendC;

extern "C" __global__ __aicore__ void kernel(GM_ADDR, GM_ADDR y) {
  GlobalTensor<float> output;
  output.SetGlobalBuffer(reinterpret_cast<__gm__ float*>(y), 32);
  LocalTensor<float> local(TPosition::VECIN, 0, 16);
  output.SetValue(0, 1.0f);
  DataCopy(local, output, 16);
}
