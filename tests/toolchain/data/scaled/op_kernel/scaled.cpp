#include "scaled_tiling.h"

#include "kernel_operator.h"
#include "scaled_tiling_key.h"
// As through a header of its own.
#include "scaled_tiling_key.h"

template <typename T, int FACTOR, bool IS_NEGATED>
__global__ __aicore__ void scaled(GM_ADDR x, GM_ADDR y, GM_ADDR workspace, GM_ADDR tiling) {
  REGISTER_TILING_DEFAULT(ScaledTiling);
  GET_TILING_DATA(data, tiling);
  AscendC::GlobalTensor<T> source, target;
  source.SetGlobalBuffer(reinterpret_cast<__gm__ T*>(x), data.count);
  target.SetGlobalBuffer(reinterpret_cast<__gm__ T*>(y), data.count);
  for (uint32_t i = 0; i < data.count; ++i) {
    const float value = static_cast<float>(source.GetValue(i)) * FACTOR;
    target.SetValue(i, static_cast<T>(IS_NEGATED ? -value : value));
  }
  AscendC::DataCacheCleanAndInvalid<T, AscendC::CacheLine::ENTIRE_DATA_CACHE>(target);
}
