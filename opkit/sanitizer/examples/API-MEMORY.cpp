#include <vector>

#include "kernel_operator.h"
using namespace AscendC;

extern "C" __global__ __aicore__ void kernel(GM_ADDR x, GM_ADDR y) {
  GlobalTensor<float> from, to;
  from.SetGlobalBuffer(reinterpret_cast<__gm__ float*>(x), 64);
  to.SetGlobalBuffer(reinterpret_cast<__gm__ float*>(y), 64);
  std::vector<float> values(64);
  for (uint32_t i = 0; i < 64; ++i) values[i] = 2 * from.GetValue(i);
  for (uint32_t i = 0; i < 64; ++i) to.SetValue(i, values[63 - i]);
}
