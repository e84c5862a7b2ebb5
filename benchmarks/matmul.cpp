// C = A * B in the plain way: tiles of 128 x 256, 512 bytes of k in L1 and 64 (16-bit) or 128 (8-bit) elements of it in
// L0A and L0B at a time. `fused` has the block's vector cores apply LeakyRelu to each tile that the cube core is done
// with.
#include "kernel_operator.h"
using namespace AscendC;

namespace {

constexpr int kTileM = 128;
constexpr int kTileN = 256;
constexpr int kSide = 16;
constexpr int kStrip = 8;  ///< rows of a tile that a vector core has in UB at a time

struct Sizes {
  int m, n, k;
  int rows() const { return m / kTileM; }
  int columns() const { return n / kTileN; }
  int tiles() const { return rows() * columns(); }
};

template <typename In, typename Out, bool is_b_by_rows>
class Product {
 public:
  Product(GM_ADDR a, GM_ADDR b, GM_ADDR c, Sizes sizes) : sizes_(sizes) {
    a_.SetGlobalBuffer((__gm__ In*)a);
    b_.SetGlobalBuffer((__gm__ In*)b);
    c_.SetGlobalBuffer((__gm__ Out*)c);
  }

  void tile(int index) {
    const int row = index / sizes_.columns() * kTileM;
    const int column = index % sizes_.columns() * kTileN;
    for (int k = 0; k < sizes_.k; k += kStep) {
      copy_in(row, column, k);
      SetFlag<HardEvent::MTE2_MTE1>(EVENT_ID0);
      WaitFlag<HardEvent::MTE2_MTE1>(EVENT_ID0);
      for (int inner = 0; inner < kStep; inner += kDepth) {
        load(inner);
        SetFlag<HardEvent::MTE1_M>(EVENT_ID0);
        WaitFlag<HardEvent::MTE1_M>(EVENT_ID0);
        Mmad(co_, a2_, b2_, MmadParams(kTileM, kTileN, kDepth, 0, false, k == 0 && inner == 0));
        SetFlag<HardEvent::M_MTE1>(EVENT_ID0);
        WaitFlag<HardEvent::M_MTE1>(EVENT_ID0);
      }
      SetFlag<HardEvent::MTE1_MTE2>(EVENT_ID0);
      WaitFlag<HardEvent::MTE1_MTE2>(EVENT_ID0);
    }
    SetFlag<HardEvent::M_FIX>(EVENT_ID0);
    WaitFlag<HardEvent::M_FIX>(EVENT_ID0);
    Fixpipe(c_[row * sizes_.n + column], co_, FixpipeParamsV220(kTileN, kTileM, kTileM, sizes_.n, false));
    SetFlag<HardEvent::FIX_M>(EVENT_ID0);
    WaitFlag<HardEvent::FIX_M>(EVENT_ID0);
  }

 private:
  static constexpr int kWidth = 32 / sizeof(In);
  static constexpr int kDepth = 128 / sizeof(In);
  static constexpr int kStep = 512 / sizeof(In);

  void copy_in(int row, int column, int k) {
    DataCopy(a1_, a_[row * sizes_.k + k], Nd2NzParams(1, kTileM, kStep, 0, sizes_.k, kTileM, 1, 0));
    if (is_b_by_rows) {
      DataCopy(b1_, b_[k * sizes_.n + column], Nd2NzParams(1, kStep, kTileN, 0, sizes_.n, kStep, 1, 0));
    } else {
      DataCopy(b1_, b_[column * sizes_.k + k], Nd2NzParams(1, kTileN, kStep, 0, sizes_.k, kTileN, 1, 0));
    }
  }

  void load(int k) {
    constexpr int kFractals = kDepth / kWidth;
    constexpr int kFractal = kSide * kWidth;
    for (int i = 0; i < kTileM / kSide; ++i) {
      LoadData(a2_[i * kFractals * kFractal], a1_[k * kTileM + i * kFractal],
               LoadData2DParams(0, kFractals, kTileM / kSide, 0, 0, false, 0));
    }
    for (int i = 0; i < kFractals; ++i) {
      const int from = is_b_by_rows ? (k / kWidth + i) * kFractal : (k + i * kWidth) * kTileN;
      LoadData(b2_[i * kTileN * kWidth], b1_[from],
               LoadData2DParams(0, kTileN / kSide, is_b_by_rows ? kStep / kSide : 1, 0, 0, is_b_by_rows, 0));
    }
  }

  Sizes sizes_;
  GlobalTensor<In> a_, b_;
  GlobalTensor<Out> c_;
  LocalTensor<In> a1_{TPosition::A1, 0, kTileM * kStep};
  LocalTensor<In> b1_{TPosition::B1, kTileM * kStep * sizeof(In), kTileN * kStep};
  LocalTensor<In> a2_{TPosition::A2, 0, kTileM * kDepth};
  LocalTensor<In> b2_{TPosition::B2, 0, kTileN * kDepth};
  LocalTensor<Out> co_{TPosition::CO1, 0, kTileM * kTileN};
};

template <typename In, typename Out, bool is_b_by_rows>
inline void multiply(GM_ADDR a, GM_ADDR b, GM_ADDR c, Sizes sizes) {
  Product<In, Out, is_b_by_rows> product(a, b, c, sizes);
  for (int tile = GetBlockIdx(); tile < sizes.tiles(); tile += GetBlockNum()) product.tile(tile);
}

inline Sizes sizes_of(GM_ADDR numbers) {
  __gm__ int32_t* size = (__gm__ int32_t*)numbers;
  return {size[0], size[1], size[2]};
}

/// Half the rows of a tile of C, in place.
inline void relu_half(GlobalTensor<float>& c, Sizes sizes, int index) {
  const int row = index / sizes.columns() * kTileM + GetSubBlockIdx() * kTileM / 2;
  const int column = index % sizes.columns() * kTileN;
  LocalTensor<float> strip(TPosition::VECCALC, 0, kStrip * kTileN);
  for (int at = row; at < row + kTileM / 2; at += kStrip) {
    const uint16_t blocks = kTileN * sizeof(float) / 32;
    const uint16_t gap = (sizes.n - kTileN) * sizeof(float) / 32;
    DataCopy(strip, c[at * sizes.n + column], DataCopyParams(kStrip, blocks, gap, 0));
    PipeBarrier<PIPE_ALL>();
    LeakyRelu(strip, strip, 0.01f, kStrip * kTileN);
    PipeBarrier<PIPE_ALL>();
    DataCopy(c[at * sizes.n + column], strip, DataCopyParams(kStrip, blocks, 0, gap));
    PipeBarrier<PIPE_ALL>();
  }
}

}  // namespace

extern "C" __global__ __aicore__ void product(GM_ADDR a, GM_ADDR b, GM_ADDR c, GM_ADDR numbers) {
  const Sizes sizes = sizes_of(numbers);
  switch (((__gm__ int32_t*)numbers)[3]) {
    case 0: return multiply<half, float, true>(a, b, c, sizes);
    case 1: return multiply<bfloat16_t, float, true>(a, b, c, sizes);
    default: return multiply<int8_t, int32_t, false>(a, b, c, sizes);
  }
}

extern "C" __global__ __aicore__ void fused(GM_ADDR a, GM_ADDR b, GM_ADDR c, GM_ADDR numbers) {
  const Sizes sizes = sizes_of(numbers);
  if ASCEND_IS_AIC {
    Product<half, float, true> product(a, b, c, sizes);
    for (int tile = GetBlockIdx(); tile < sizes.tiles(); tile += GetBlockNum()) {
      product.tile(tile);
      CrossCoreSetFlag<2, PIPE_FIX>(0);
    }
  }
  if ASCEND_IS_AIV {
    GlobalTensor<float> out;
    out.SetGlobalBuffer((__gm__ float*)c);
    for (int tile = GetBlockIdx() / GetSubBlockNum(); tile < sizes.tiles(); tile += GetBlockNum()) {
      CrossCoreWaitFlag(0);
      relu_half(out, sizes, tile);
    }
  }
}

#ifdef FUSED
OPKIT_KERNEL_TABLE_AS(fused, Mix12)
#else
OPKIT_KERNEL_TABLE_AS(product, Cube)
#endif
