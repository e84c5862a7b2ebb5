#include "kernel_operator.h"
using namespace AscendC;

extern "C" __global__ __aicore__ void kernel(GM_ADDR x, GM_ADDR y) {
  (void)x, (void)y;
  const uint32_t tile_bytes = 100;
  ASSERT(tile_bytes % 32 == 0);
}
