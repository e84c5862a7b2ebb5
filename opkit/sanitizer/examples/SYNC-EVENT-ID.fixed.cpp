#include "kernel_operator.h"
using namespace AscendC;

extern "C" __global__ __aicore__ void kernel(GM_ADDR x, GM_ADDR y) {
  (void)y;
  GlobalTensor<float> input;
  input.SetGlobalBuffer(reinterpret_cast<__gm__ float*>(x), 64);
  TPipe pipe;
  TQue<TPosition::VECIN, 1> queue;
  pipe.InitBuffer(queue, 1, 256);
  LocalTensor<float> filled = queue.AllocTensor<float>();
  DataCopy(filled, input, 64);
  queue.EnQue(filled);
  const auto id = static_cast<event_t>(pipe.FetchEventID(HardEvent::MTE2_V));
  SetFlag<HardEvent::MTE2_V>(id);
  WaitFlag<HardEvent::MTE2_V>(id);
  queue.FreeTensor(queue.DeQue<float>());
}
