#include "kernel_operator.h"
using namespace AscendC;

extern "C" __global__ __aicore__ void kernel(GM_ADDR x, GM_ADDR y) {
  GlobalTensor<float> input, output;
  input.SetGlobalBuffer(reinterpret_cast<__gm__ float*>(x), 16);
  output.SetGlobalBuffer(reinterpret_cast<__gm__ float*>(y), 32);
  const auto block = static_cast<uint32_t>(GetBlockIdx());
  output.SetValue(block, input.GetValue(block));
}
