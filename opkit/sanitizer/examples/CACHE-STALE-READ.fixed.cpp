#include "kernel_operator.h"
using namespace AscendC;

extern "C" __global__ __aicore__ void kernel(GM_ADDR x, GM_ADDR y) {
  GlobalTensor<float> input, output;
  input.SetGlobalBuffer(reinterpret_cast<__gm__ float*>(x), 16);
  output.SetGlobalBuffer(reinterpret_cast<__gm__ float*>(y), 32);
  LocalTensor<float> local(TPosition::VECIN, 0, 16);
  DataCopy(local, input, 16);
  const float before = output.GetValue(0);
  SetFlag<HardEvent::MTE2_MTE3>(EVENT_ID0);
  WaitFlag<HardEvent::MTE2_MTE3>(EVENT_ID0);
  DataCopy(output, local, 16);
  SetFlag<HardEvent::MTE3_S>(EVENT_ID0);
  WaitFlag<HardEvent::MTE3_S>(EVENT_ID0);
  DataCacheCleanAndInvalid<float, CacheLine::SINGLE_CACHE_LINE, DcciDst::CACHELINE_OUT>(output);
  output.SetValue(16, output.GetValue(0) - before);
}
