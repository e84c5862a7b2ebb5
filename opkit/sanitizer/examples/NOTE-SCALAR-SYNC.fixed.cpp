#include "kernel_operator.h"
using namespace AscendC;

extern "C" __global__ __aicore__ void kernel(GM_ADDR x, GM_ADDR y) {
  (void)x, (void)y;
  LocalTensor<float> a(TPosition::VECCALC, 0, 64);
  Duplicate(a, 1.0f, 64);
  SetFlag<HardEvent::V_S>(EVENT_ID0);
  WaitFlag<HardEvent::V_S>(EVENT_ID0);
  const float first = a.GetValue(0);
  (void)first;
}
