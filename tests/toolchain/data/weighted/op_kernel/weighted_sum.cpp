#include "kernel_operator.h"
using namespace AscendC;
extern "C" __global__ __aicore__ void weighted_sum(GM_ADDR x, GM_ADDR y, GM_ADDR workspace, GM_ADDR tiling) {
  GET_TILING_DATA(data, tiling);
  ListTensorDesc list((__gm__ void*)x);
  GlobalTensor<DTYPE_Y> out;
  out.SetGlobalBuffer((__gm__ DTYPE_Y*)y, data.length);
  for (uint32_t i = 0; i < data.length; ++i) {
    float sum = data.offset;
    for (uint32_t k = 0; k < list.GetSize(); ++k) {
      GlobalTensor<DTYPE_X> in;
      in.SetGlobalBuffer(list.GetDataPtr<__gm__ DTYPE_X>(k), data.length);
      sum += data.scale.factor * in.GetValue(i);
    }
    out.SetValue(i, sum);
  }
}
