#include "kernel_operator.h"
using namespace AscendC;

extern "C" __global__ __aicore__ void row_scale(GM_ADDR x, GM_ADDR gamma, GM_ADDR z, GM_ADDR workspace,
                                                GM_ADDR tiling) {
  GET_TILING_DATA(data, tiling);
  TPipe pipe;
  TQue<QuePosition::VECIN, 2> rows;
  TQue<QuePosition::VECIN, 1> factors;
  TQue<QuePosition::VECOUT, 2> results;
  const uint32_t bytes = data.columns * sizeof(float);
  pipe.InitBuffer(rows, data.buffers, bytes);
  pipe.InitBuffer(factors, 1, bytes);
  pipe.InitBuffer(results, data.buffers, bytes);
  GlobalTensor<float> from, factor, to;
  from.SetGlobalBuffer((__gm__ float*)x, data.rows * data.columns);
  factor.SetGlobalBuffer((__gm__ float*)gamma, data.columns);
  to.SetGlobalBuffer((__gm__ float*)z, data.rows * data.columns);
  LocalTensor<float> loaded = factors.AllocTensor<float>();
  DataCopy(loaded, factor, data.columns);
  factors.EnQue(loaded);
  LocalTensor<float> scales = factors.DeQue<float>();
  for (uint32_t row = 0; row < data.rows; ++row) {
    LocalTensor<float> in = rows.AllocTensor<float>();
    DataCopy(in, from[row * data.columns], data.columns);
    rows.EnQue(in);
    LocalTensor<float> local = rows.DeQue<float>();
    LocalTensor<float> out = results.AllocTensor<float>();
    Mul(out, local, scales, data.columns);
    Muls(out, out, data.scale, data.columns);
    results.EnQue(out);
    rows.FreeTensor(local);
    LocalTensor<float> done = results.DeQue<float>();
    DataCopy(to[row * data.columns], done, data.columns);
    results.FreeTensor(done);
  }
  factors.FreeTensor(scales);
}
