#include "kernel_operator.h"
using namespace AscendC;

extern "C" __global__ __aicore__ void kernel(GM_ADDR x, GM_ADDR y) {
  GlobalTensor<float> input, output;
  input.SetGlobalBuffer(reinterpret_cast<__gm__ float*>(x), 64);
  output.SetGlobalBuffer(reinterpret_cast<__gm__ float*>(y), 64);
  TPipe pipe;
  TQueBind<TPosition::VECIN, TPosition::VECOUT, 1> queue;
  pipe.InitBuffer(queue, 2, 256);
  LocalTensor<float> filled = queue.AllocTensor<float>();
  DataCopy(filled, input, 64);
  queue.EnQue(filled);
  LocalTensor<float> taken = queue.DeQue<float>();
  DataCopy(output, taken, 64);
  queue.FreeTensor(taken);
}
