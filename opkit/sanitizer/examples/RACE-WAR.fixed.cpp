#include "kernel_operator.h"
using namespace AscendC;

extern "C" __global__ __aicore__ void kernel(GM_ADDR x, GM_ADDR y) {
  GlobalTensor<float> input, output;
  input.SetGlobalBuffer(reinterpret_cast<__gm__ float*>(x), 128);
  output.SetGlobalBuffer(reinterpret_cast<__gm__ float*>(y), 128);
  LocalTensor<float> a(TPosition::VECIN, 0, 64);
  for (int tile = 0; tile < 2; ++tile) {
    DataCopy(a, input[tile * 64], 64);
    SetFlag<HardEvent::MTE2_MTE3>(EVENT_ID0);
    WaitFlag<HardEvent::MTE2_MTE3>(EVENT_ID0);
    DataCopy(output[tile * 64], a, 64);
    SetFlag<HardEvent::MTE3_MTE2>(EVENT_ID0);
    WaitFlag<HardEvent::MTE3_MTE2>(EVENT_ID0);
  }
}
