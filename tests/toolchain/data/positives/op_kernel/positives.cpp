#include "kernel_operator.h"
#include "positives_tiling.h"

/// y: the elements of x above 0; how many there are, the kernel says.
extern "C" __global__ __aicore__ void positives(GM_ADDR x, GM_ADDR y, GM_ADDR shape, GM_ADDR workspace,
                                                GM_ADDR tiling) {
  REGISTER_TILING_DEFAULT(PositivesTiling);
  GET_TILING_DATA(data, tiling);
  AscendC::GlobalTensor<float> in, out;
  AscendC::GlobalTensor<uint64_t> words;
  in.SetGlobalBuffer((__gm__ float*)x, data.length);
  out.SetGlobalBuffer((__gm__ float*)y, data.length);
  words.SetGlobalBuffer((__gm__ uint64_t*)shape, 9);
  uint64_t found = 0;
  for (uint32_t i = 0; i < data.length; ++i) {
    if (in.GetValue(i) > 0) out.SetValue(found++, in.GetValue(i));
  }
  words.SetValue(0, 1);
  words.SetValue(1, found);
}
