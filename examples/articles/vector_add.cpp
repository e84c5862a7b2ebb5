// z = x + y, halves: as a first kernel is written, and as the chip wants it.
#include "kernel_operator.h"

using namespace AscendC;

namespace {

/// A core's share in tiles; kBuffers of each tensor.
template <int32_t kBuffers>
class VectorAdd {
 public:
  __aicore__ inline VectorAdd(GM_ADDR x, GM_ADDR y, GM_ADDR z, uint32_t length, uint32_t tile) : tile_(tile) {
    // Whole runs of 512 bytes for each core but the last.
    const uint32_t whole = (length / 256 + GetBlockNum() - 1) / GetBlockNum() * 256;
    const uint32_t begin = whole * GetBlockIdx() < length ? whole * GetBlockIdx() : length;
    share_ = begin + whole < length ? whole : length - begin;
    x_.SetGlobalBuffer(reinterpret_cast<__gm__ half*>(x) + begin, share_);
    y_.SetGlobalBuffer(reinterpret_cast<__gm__ half*>(y) + begin, share_);
    z_.SetGlobalBuffer(reinterpret_cast<__gm__ half*>(z) + begin, share_);
    pipe_.InitBuffer(in_x_, kBuffers, tile * sizeof(half));
    pipe_.InitBuffer(in_y_, kBuffers, tile * sizeof(half));
    pipe_.InitBuffer(out_, kBuffers, tile * sizeof(half));
  }

  __aicore__ inline void run() {
    for (uint32_t done = 0; done < share_; done += tile_) {
      const uint32_t count = share_ - done < tile_ ? share_ - done : tile_;
      copy_in(done, count);
      compute(count);
      copy_out(done, count);
    }
  }

 private:
  __aicore__ inline void copy_in(uint32_t at, uint32_t count) {
    LocalTensor<half> x = in_x_.template AllocTensor<half>();
    LocalTensor<half> y = in_y_.template AllocTensor<half>();
    DataCopy(x, x_[at], count);
    DataCopy(y, y_[at], count);
    in_x_.EnQue(x);
    in_y_.EnQue(y);
  }
  __aicore__ inline void compute(uint32_t count) {
    LocalTensor<half> x = in_x_.template DeQue<half>();
    LocalTensor<half> y = in_y_.template DeQue<half>();
    LocalTensor<half> z = out_.template AllocTensor<half>();
    Add(z, x, y, static_cast<int32_t>(count));
    out_.EnQue(z);
    in_x_.FreeTensor(x);
    in_y_.FreeTensor(y);
  }
  __aicore__ inline void copy_out(uint32_t at, uint32_t count) {
    LocalTensor<half> z = out_.template DeQue<half>();
    DataCopy(z_[at], z, count);
    out_.FreeTensor(z);
  }

  uint32_t tile_, share_;
  TPipe pipe_;
  TQue<TPosition::VECIN, kBuffers> in_x_, in_y_;
  TQue<TPosition::VECOUT, kBuffers> out_;
  GlobalTensor<half> x_, y_, z_;
};

}  // namespace

/// Tiles of 256 elements, one buffer: every copy waits for the one before.
extern "C" __global__ __vector__ void vector_add_naive(GM_ADDR x, GM_ADDR y, GM_ADDR z, uint32_t length) {
  VectorAdd<1>(x, y, z, length, 256).run();
}

/// Tiles of 11 KiB elements, two buffers: copies of 22 KiB run while the tile before is added.
extern "C" __global__ __vector__ void vector_add_optimised(GM_ADDR x, GM_ADDR y, GM_ADDR z, uint32_t length) {
  VectorAdd<2>(x, y, z, length, 11264).run();
}
