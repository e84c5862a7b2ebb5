#include "../shift_common/shift_loop.h"
#include "kernel_operator.h"
#include "math/shift_common/op_host/shift_tiling_data.h"

extern "C" __global__ __aicore__ void shift(GM_ADDR x, GM_ADDR size, GM_ADDR y, GM_ADDR workspace, GM_ADDR tiling) {
  KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_MIX_VECTOR_CORE);
  REGISTER_TILING_DEFAULT(ShiftTilingData);
  GET_TILING_DATA(data, tiling);
  const int64_t begin = AscendC::GetBlockIdx() * data.per_core;
  const int64_t rest = data.count - begin;
  const float32_t by = static_cast<float32_t>(data.by);
  shift_part<DTYPE_X, AscendC::Adds>(x, y, static_cast<DTYPE_X>(by), begin,
                                     rest < data.per_core ? rest : data.per_core);
}

#ifndef __CCE_KT_TEST__
void shift_do(uint32_t block_count, void* stream, uint8_t* x, uint8_t* size, uint8_t* y, uint8_t* workspace,
              uint8_t* tiling) {
  shift<<<block_count, nullptr, stream>>>(x, size, y, workspace, tiling);
}
#endif
