// The tensors of a list, one behind the other in memory: what operators over lists compute on.
#pragma once

#include "kernel_operator.h"

namespace opkit::kernels {

using namespace AscendC;

class ListTensors {
 public:
  __aicore__ inline ListTensors() { pipe_.InitBuffer(queue_, kBuffers, kChunk); }

  /// Copies a list's tensors to `joined`, in order; every vector core of the launch takes part.
  __aicore__ inline void join(GM_ADDR list, GM_ADDR joined, uint32_t elementBytes) {
    copy<true>(list, joined, elementBytes);
  }

  /// Copies what lies in `joined` to a list's tensors.
  __aicore__ inline void split(GM_ADDR joined, GM_ADDR list, uint32_t elementBytes) {
    copy<false>(list, joined, elementBytes);
  }

 private:
  static constexpr int64_t kChunk = 32 * 1024;  // bytes of a copy
  static constexpr uint32_t kBuffers = 2;
  static constexpr uint32_t kMostAxes = 25;  // of gert::Shape

  template <bool kJoins>
  __aicore__ inline void copy(GM_ADDR list, GM_ADDR joined, uint32_t elementBytes) {
    ListTensorDesc tensors(reinterpret_cast<__gm__ void*>(list));
    const int64_t cores = GetBlockNum() * GetSubBlockNum();
    const uint32_t count = tensors.GetSize();
    int64_t taken = 0;  // chunks, so that the cores take turns over all tensors
    for (uint32_t i = 0; i < count; ++i) {
      const int64_t bytes = elementBytes * elements_of(tensors, i);
      GM_ADDR tensor = reinterpret_cast<GM_ADDR>(tensors.GetDataPtr<__gm__ uint8_t>(i));
      const int64_t first = (GetBlockIdx() + cores - taken % cores) % cores;
      for (int64_t at = first * kChunk; at < bytes; at += cores * kChunk) {
        const uint32_t length = static_cast<uint32_t>(bytes - at < kChunk ? bytes - at : kChunk);
        move((kJoins ? tensor : joined) + at, (kJoins ? joined : tensor) + at, length);
      }
      taken += (bytes + kChunk - 1) / kChunk;
      joined += bytes;
    }
  }

  __aicore__ inline int64_t elements_of(ListTensorDesc& tensors, uint32_t index) const {
    uint64_t shape[kMostAxes] = {};
    TensorDesc<uint8_t> description;
    description.SetShapeAddr(shape);
    tensors.GetDesc(description, index);
    int64_t elements = 1;
    for (uint32_t axis = 0; axis < description.GetDim(); ++axis) {
      elements *= static_cast<int64_t>(description.GetShape(axis));
    }
    return elements;
  }

  __aicore__ inline void move(GM_ADDR from, GM_ADDR to, uint32_t length) {
    GlobalTensor<uint8_t> source;
    GlobalTensor<uint8_t> destination;
    source.SetGlobalBuffer(from, length);
    destination.SetGlobalBuffer(to, length);
    const DataCopyExtParams run{1, length, 0, 0, 0};
    LocalTensor<uint8_t> chunk = queue_.AllocTensor<uint8_t>();
    DataCopyPad(chunk, source, run, DataCopyPadExtParams<uint8_t>{false, 0, 0, 0});
    queue_.EnQue(chunk);
    chunk = queue_.DeQue<uint8_t>();
    DataCopyPad(destination, chunk, run);
    queue_.FreeTensor(chunk);
  }

  TPipe pipe_;
  TQueBind<TPosition::VECIN, TPosition::VECOUT, kBuffers> queue_;
};

}  // namespace opkit::kernels
