#include "kernel_operator.h"
#include "nibbles_tiling.h"

template <typename T>
constexpr uint32_t bytes_of(uint32_t count) {
  return std::is_same<T, AscendC::int4b_t>::value ? count / 2 : count * sizeof(T);
}

/// y = x in the other type: int4 of half, rounded, or half of int4.
extern "C" __global__ __aicore__ void nibbles(GM_ADDR x, GM_ADDR y, GM_ADDR workspace, GM_ADDR tiling) {
  using namespace AscendC;
  REGISTER_TILING_DEFAULT(NibblesTiling);
  GET_TILING_DATA(data, tiling);
  constexpr bool kIsPacked = ORIG_DTYPE_X == DT_INT4;
  GlobalTensor<uint8_t> in, out;
  in.SetGlobalBuffer(x);
  out.SetGlobalBuffer(y);
  LocalTensor<uint8_t> read(TPosition::VECIN, 0, 32 * 1024), written(TPosition::VECOUT, 32 * 1024, 32 * 1024);
  DataCopyPad(read, in, DataCopyExtParams{1, bytes_of<DTYPE_X>(data.length), 0, 0, 0}, DataCopyPadExtParams<uint8_t>{});
  SetFlag<HardEvent::MTE2_V>(0);
  WaitFlag<HardEvent::MTE2_V>(0);
  Cast(written.ReinterpretCast<DTYPE_Y>(), read.ReinterpretCast<DTYPE_X>(),
       kIsPacked ? RoundMode::CAST_NONE : RoundMode::CAST_RINT, data.length);
  SetFlag<HardEvent::V_MTE3>(0);
  WaitFlag<HardEvent::V_MTE3>(0);
  DataCopyPad(out, written, DataCopyExtParams{1, bytes_of<DTYPE_Y>(data.length), 0, 0, 0});
}
