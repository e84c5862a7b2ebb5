#include "kernel_operator.h"
using namespace AscendC;

extern "C" __global__ __aicore__ void kernel(GM_ADDR x, GM_ADDR y) {
  GlobalTensor<float> input, output;
  input.SetGlobalBuffer(reinterpret_cast<__gm__ float*>(x), 16);
  output.SetGlobalBuffer(reinterpret_cast<__gm__ float*>(y), 24);
  LocalTensor<float> a(TPosition::VECIN, 0, 16);
  DataCopy(a, input, 16);
  SetFlag<HardEvent::MTE2_MTE3>(EVENT_ID0);
  WaitFlag<HardEvent::MTE2_MTE3>(EVENT_ID0);
  DataCopy(output[GetBlockIdx() * 8], a, 8);
}
