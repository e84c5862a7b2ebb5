// Kernel: elements and rows picked by tensors of numbers, put there or added there, for the device: its plan lies in
// global memory.
#include "elements.h"

#include "kernel_operator.h"

extern "C" __global__ __aicore__ void move_by_index(GM_ADDR table, GM_ADDR plain, GM_ADDR i0, GM_ADDR i1, GM_ADDR i2,
                                                    GM_ADDR i3, GM_ADDR plan) {
  opkit::kernels::move_by_index(table, plain, i0, i1, i2, i3,
                                *reinterpret_cast<__gm__ const opkit::kernels::ElementsPlan*>(plan));
}
