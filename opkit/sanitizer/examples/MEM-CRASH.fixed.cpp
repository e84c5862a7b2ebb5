#include "kernel_operator.h"
using namespace AscendC;

extern "C" __global__ __aicore__ void kernel(GM_ADDR x, GM_ADDR y) {
  (void)x, (void)y;
  volatile int tiles = 4;  // as it may come from the host
  volatile int share = 64 / tiles;
  (void)share;
}
