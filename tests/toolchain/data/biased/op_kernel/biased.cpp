#include "kernel_operator.h"
#include "biased_tiling.h"

/// y = x + bias + terms[0] + terms[1] + ...
extern "C" __global__ __aicore__ void biased(GM_ADDR x, GM_ADDR bias, GM_ADDR terms, GM_ADDR y, GM_ADDR workspace,
                                             GM_ADDR tiling) {
  REGISTER_TILING_DEFAULT(BiasedTiling);
  GET_TILING_DATA(data, tiling);
  AscendC::GlobalTensor<DTYPE_X> in, out;
  in.SetGlobalBuffer((__gm__ DTYPE_X*)x, data.length);
  out.SetGlobalBuffer((__gm__ DTYPE_X*)y, data.length);
  DTYPE_BIAS sum = *(__gm__ DTYPE_BIAS*)bias;
  for (uint32_t k = 0; k < data.terms; ++k) sum += ((__gm__ DTYPE_TERMS*)terms)[k];
  for (uint32_t i = 0; i < data.length; ++i) out.SetValue(i, in.GetValue(i) + sum);
}
