/// Elements of one core, by any instruction of a tensor and a number.
#pragma once

#include "basic_api/kernel_basic_intf.h"

template <typename T>
using WithNumber = void(const AscendC::LocalTensor<T>&, const AscendC::LocalTensor<T>&, const T&, const int32_t&);

template <typename T, WithNumber<T>* instruction>
inline __aicore__ void shift_part(GM_ADDR x, GM_ADDR y, T number, uint32_t begin, uint32_t count) {
  using namespace AscendC;
  TPipe pipe;
  TBuf<TPosition::VECCALC> buffer;
  const uint32_t bytes = count * sizeof(T);
  pipe.InitBuffer(buffer, (bytes + 31) / 32 * 32);
  LocalTensor<T> values = buffer.Get<T>();
  GlobalTensor<T> from, to;
  from.SetGlobalBuffer(reinterpret_cast<__gm__ T*>(x) + begin);
  to.SetGlobalBuffer(reinterpret_cast<__gm__ T*>(y) + begin);
  DataCopyPad(values, from, {1, bytes, 0, 0, 0}, DataCopyPadExtParams{false, 0, 0, T(0)});
  PipeBarrier<PIPE_ALL>();
  instruction(values, values, number, static_cast<int32_t>(count));
  PipeBarrier<PIPE_ALL>();
  DataCopyPad(to, values, {1, bytes, 0, 0, 0});
}
