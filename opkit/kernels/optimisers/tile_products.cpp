// Kernels: C = A B of halves on the cube cores in tiles of C, which the host has balanced over the cores.
// `block_sparse` has blocks of 64 x 64 of A, as fractals, and adds up those that are there; `dense_product` has all of
// A.
#include "kernel_operator.h"

using namespace AscendC;

namespace {

constexpr int32_t kTileN = 256;
constexpr int32_t kDepth = 64;  // of k in L0A and L0B at a time
constexpr int32_t kSide = 16;
constexpr int32_t kFractal = kSide * kSide;

template <typename T>
__aicore__ inline GlobalTensor<T> global(GM_ADDR address) {
  GlobalTensor<T> tensor;
  tensor.SetGlobalBuffer(reinterpret_cast<__gm__ T*>(address));
  return tensor;
}

struct Addresses {
  GM_ADDR a;
  GM_ADDR b;
  GM_ADDR c;
  GM_ADDR starts;
  GM_ADDR tiles;
  GM_ADDR step_starts;
  GM_ADDR step_rows;
  GM_ADDR plan;
};

/// Tiles of kTileM rows and kHalves times 256 columns; kStage elements of k in L1 at a time, kStages of those under
/// way.
template <int32_t kTileM, int32_t kStage, int32_t kStages, bool is_sparse>
class Tiles {
 public:
  __aicore__ inline explicit Tiles(const Addresses& x)
      : a_(global<half>(x.a)),
        b_(global<half>(x.b)),
        c_(global<half>(x.c)),
        step_starts_(global<int32_t>(x.step_starts)),
        step_rows_(global<int32_t>(x.step_rows)),
        m_(global<int32_t>(x.plan).GetValue(0)),
        n_(global<int32_t>(x.plan).GetValue(1)),
        k_(global<int32_t>(x.plan).GetValue(2)) {
    for (int32_t i = 0; i < kStages; ++i) SetFlag<HardEvent::MTE1_MTE2>(i);
    for (int32_t i = 0; i < 2; ++i) SetFlag<HardEvent::M_MTE1>(i);
    for (int32_t i = 0; i < kBuffers && !kHasUnitFlags; ++i) SetFlag<HardEvent::FIX_M>(i);
  }

  __aicore__ inline void finish() {
    for (int32_t i = 0; i < kStages; ++i) WaitFlag<HardEvent::MTE1_MTE2>(i);
    for (int32_t i = 0; i < 2; ++i) WaitFlag<HardEvent::M_MTE1>(i);
    for (int32_t i = 0; i < kBuffers && !kHasUnitFlags; ++i) WaitFlag<HardEvent::FIX_M>(i);
  }

  /// One tile: `row` and `column` count tiles, `list` is its list of blocks.
  __aicore__ inline void tile(int32_t row, int32_t column, int32_t list) {
    const int32_t m0 = row * kTileM;
    const int32_t n0 = column * kTileN;
    rows_ = smaller(m_ - m0, kTileM);
    columns_ = smaller(n_ - n0, kTileN);
    const int32_t sums = tile_count_++ % kBuffers;
    const int32_t first = is_sparse ? step_starts_.GetValue(list) : 0;
    const int32_t steps = is_sparse ? step_starts_.GetValue(list + 1) - first : (k_ + kStage - 1) / kStage;
    // Cores that have one part of a, or of b, begin at different places of k: in step they would wait for each other.
    const int32_t turn =
        is_sparse ? 0 : static_cast<int32_t>(GetBlockIdx()) * steps / static_cast<int32_t>(GetBlockNum());
    for (int32_t step = 0; step < steps; ++step) {
      const int32_t stage = stage_count_++ % kStages;
      // A strip without blocks has one of zeros, of which a part is enough: c is written in any case.
      const int32_t from = is_sparse ? step_rows_.GetValue(first + step) : (step + turn) % steps * kStage;
      const int32_t k0 = from < 0 ? 0 : from;
      const int32_t depth = from < 0 ? kSide : smaller(k_ - k0, kStage);
      const LocalTensor<half> a1 = a1_[stage * kTileM * kStage];
      const LocalTensor<half> b1 = b1_[stage * kStage * kTileN];
      WaitFlag<HardEvent::MTE1_MTE2>(stage);
      if (is_sparse) {
        DataCopy(a1, a_[static_cast<uint64_t>(first + step) * kTileM * kStage], kTileM * depth);
      } else {
        DataCopy(a1, a_[static_cast<uint64_t>(m0) * k_ + k0],
                 Nd2NzParams(1, round_up(rows_), depth, 0, k_, kTileM, 1, 0));
      }
      DataCopy(b1, b_[static_cast<uint64_t>(k0) * n_ + n0], Nd2NzParams(1, depth, columns_, 0, n_, kStage, 1, 0));
      SetFlag<HardEvent::MTE2_MTE1>(stage);
      WaitFlag<HardEvent::MTE2_MTE1>(stage);
      for (int32_t inner = 0; inner < depth; inner += kDepth) {
        const Part part{inner, smaller(depth - inner, kDepth) / kSide, step == 0 && inner == 0,
                        step + 1 == steps && inner + kDepth >= depth};
        multiply(a1, b1, sums, part);
      }
      SetFlag<HardEvent::MTE1_MTE2>(stage);
    }
    copy_out(m0, n0, sums);
  }

 private:
  /// Some fractals of k.
  struct Part {
    int32_t k, fractals;
    bool is_first, is_last;
  };

  /// Tiles in L0C. FIX follows M through a single one; of two each has one.
  static constexpr int32_t kBuffers = kTileM > 64 ? 1 : 2;
  static constexpr bool kHasUnitFlags = kBuffers == 1;

  static __aicore__ inline int32_t smaller(int32_t a, int32_t b) { return a < b ? a : b; }
  static __aicore__ inline uint16_t round_up(int32_t value) {
    return static_cast<uint16_t>((value + kSide - 1) / kSide * kSide);
  }

  __aicore__ inline void multiply(const LocalTensor<half>& a1, const LocalTensor<half>& b1, int32_t sums,
                                  const Part& part) {
    const int32_t buffer = part_count_++ & 1;
    WaitFlag<HardEvent::M_MTE1>(buffer);
    load(a1, b1, buffer, part);
    SetFlag<HardEvent::MTE1_M>(buffer);
    WaitFlag<HardEvent::MTE1_M>(buffer);
    if (part.is_first && !kHasUnitFlags) WaitFlag<HardEvent::FIX_M>(sums);
    const uint8_t unit_flag = !kHasUnitFlags ? 0 : part.is_last ? 3 : 2;
    Mmad(c0_[sums * kTileM * kTileN], a2_[buffer * kTileM * kDepth], b2_[buffer * kDepth * kTileN],
         MmadParams(round_up(rows_), round_up(columns_), static_cast<uint16_t>(part.fractals * kSide), unit_flag, false,
                    part.is_first));
    SetFlag<HardEvent::M_MTE1>(buffer);
    if (part.is_last && !kHasUnitFlags) SetFlag<HardEvent::M_FIX>(sums);
  }

  __aicore__ inline void load(const LocalTensor<half>& a1, const LocalTensor<half>& b1, int32_t buffer,
                              const Part& part) {
    for (int32_t i = 0; i < round_up(rows_) / kSide; ++i) {
      LoadData(a2_[buffer * kTileM * kDepth + i * part.fractals * kFractal], a1[part.k * kTileM + i * kFractal],
               LoadData2DParams(0, static_cast<uint8_t>(part.fractals), kTileM / kSide, 0, 0, false, 0));
    }
    const uint8_t across = static_cast<uint8_t>(round_up(columns_) / kSide);
    for (int32_t i = 0; i < part.fractals; ++i) {
      LoadData(b2_[buffer * kDepth * kTileN + i * across * kFractal], b1[(part.k / kSide + i) * kFractal],
               LoadData2DParams(0, across, kStage / kSide, 0, 0, true, 0));
    }
  }

  __aicore__ inline void copy_out(int32_t m0, int32_t n0, int32_t sums) {
    FixpipeParamsV220 out(static_cast<uint16_t>(columns_), static_cast<uint16_t>(rows_), round_up(rows_), n_, false);
    out.quantPre = QuantMode_t::F322F16;
    out.unitFlag = kHasUnitFlags ? 3 : 0;
    if (!kHasUnitFlags) WaitFlag<HardEvent::M_FIX>(sums);
    Fixpipe(c_[static_cast<uint64_t>(m0) * n_ + n0], c0_[sums * kTileM * kTileN], out);
    if (!kHasUnitFlags) SetFlag<HardEvent::FIX_M>(sums);
  }

  GlobalTensor<half> a_, b_, c_;
  GlobalTensor<int32_t> step_starts_, step_rows_;
  int32_t m_, n_, k_;
  int32_t rows_ = 0, columns_ = 0;
  int32_t tile_count_ = 0, stage_count_ = 0, part_count_ = 0;
  LocalTensor<half> a1_{TPosition::A1, 0, kStages * kTileM * kStage};
  LocalTensor<half> b1_{TPosition::B1, kStages * kTileM * kStage * sizeof(half), kStages * kStage * kTileN};
  LocalTensor<half> a2_{TPosition::A2, 0, 2 * kTileM * kDepth};
  LocalTensor<half> b2_{TPosition::B2, 0, 2 * kDepth * kTileN};
  LocalTensor<float> c0_{TPosition::CO1, 0, kBuffers * kTileM * kTileN};
};

template <int32_t kTileM, int32_t kStage, int32_t kStages, bool is_sparse>
__aicore__ inline void multiply(const Addresses& x) {
  Tiles<kTileM, kStage, kStages, is_sparse> product(x);
  const GlobalTensor<int32_t> own = global<int32_t>(x.starts);
  const GlobalTensor<int32_t> tiles = global<int32_t>(x.tiles);
  const int32_t end = own.GetValue(GetBlockIdx() + 1);
  for (int32_t i = own.GetValue(GetBlockIdx()); i < end; ++i) {
    product.tile(tiles.GetValue(3 * i), tiles.GetValue(3 * i + 1), tiles.GetValue(3 * i + 2));
  }
  product.finish();
}

}  // namespace

extern "C" __global__ __cube__ void block_sparse(GM_ADDR a, GM_ADDR b, GM_ADDR c, GM_ADDR starts, GM_ADDR tiles,
                                                 GM_ADDR step_starts, GM_ADDR step_rows, GM_ADDR plan) {
  multiply<64, 64, 8, true>({a, b, c, starts, tiles, step_starts, step_rows, plan});
}

extern "C" __global__ __cube__ void dense_product(GM_ADDR a, GM_ADDR b, GM_ADDR c, GM_ADDR starts, GM_ADDR tiles,
                                                  GM_ADDR step_starts, GM_ADDR step_rows, GM_ADDR plan) {
  multiply<128, 128, 4, false>({a, b, c, starts, tiles, step_starts, step_rows, plan});
}
