// Kernels along one dim, for the device: their plans lie in global memory.
#include "kernel_operator.h"
#include "order.h"

using opkit::kernels::LinePlan;

extern "C" __global__ __aicore__ void sort_lines(GM_ADDR x, GM_ADDR values, GM_ADDR places, GM_ADDR plan) {
  opkit::kernels::sort_lines(x, values, places, *reinterpret_cast<__gm__ const LinePlan*>(plan));
}

extern "C" __global__ __aicore__ void scan_lines(GM_ADDR x, GM_ADDR out, GM_ADDR plan) {
  opkit::kernels::scan_lines(x, out, *reinterpret_cast<__gm__ const LinePlan*>(plan));
}

extern "C" __global__ __aicore__ void fold_lines(GM_ADDR x, GM_ADDR out, GM_ADDR plan) {
  opkit::kernels::fold_lines(x, out, *reinterpret_cast<__gm__ const LinePlan*>(plan));
}

extern "C" __global__ __aicore__ void extreme_lines(GM_ADDR x, GM_ADDR values, GM_ADDR places, GM_ADDR space,
                                                    GM_ADDR plan) {
  opkit::kernels::extreme_lines(x, values, places, space, *reinterpret_cast<__gm__ const LinePlan*>(plan));
}
