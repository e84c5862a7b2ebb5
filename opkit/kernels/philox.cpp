// Kernel: uniform random numbers, for the device: its plan lies in global memory.
#include "kernel_operator.h"
#include "philox.h"

extern "C" __global__ __aicore__ void random_uniform(GM_ADDR out, GM_ADDR plan) {
  opkit::kernels::random_uniform(out, *reinterpret_cast<__gm__ const opkit::kernels::RandomPlan*>(plan));
}
