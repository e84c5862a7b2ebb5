#include "kernel_operator.h"

struct ScaleTiling {
  uint32_t length;
  float factor;
};

extern "C" __global__ __aicore__ void scale_rows(GM_ADDR x, GM_ADDR y, GM_ADDR workspace, GM_ADDR tiling) {
  using namespace AscendC;
  GET_TILING_DATA_WITH_STRUCT(ScaleTiling, data, tiling);
  TPipe pipe;
  TBuf<TPosition::VECCALC> buffer;
  pipe.InitBuffer(buffer, 1024);
  GlobalTensor<float> in, out;
  in.SetGlobalBuffer((__gm__ float*)x + GetBlockIdx() * data.length, data.length);
  out.SetGlobalBuffer((__gm__ float*)y + GetBlockIdx() * data.length, data.length);
  LocalTensor<float> row = buffer.Get<float>();
  DataCopy(row, in, data.length);
  PipeBarrier<PIPE_ALL>();
  if (TILING_KEY_IS(7)) Muls(row, row, data.factor, data.length);
  PipeBarrier<PIPE_ALL>();
  DataCopy(out, row, data.length);
}
