// Matrix products by Matmul objects as published runs describe them: cut into shares, on cube cores alone, on requests
// of vector cores, or handed over to vector cores block by block.
#ifndef ON_REQUEST
#define ASCENDC_CUBE_ONLY
#endif
#include "kernel_operator.h"
#include "lib/matmul_intf.h"

using namespace AscendC;

namespace {

template <typename T, bool is_turned = false>
using Gm = MatmulType<TPosition::GM, CubeFormat::ND, T, is_turned>;

template <typename T>
GlobalTensor<T> tensor(GM_ADDR address, uint64_t element = 0) {
  GlobalTensor<T> gm;
  gm.SetGlobalBuffer(reinterpret_cast<__gm__ T*>(address) + element);
  return gm;
}

constexpr MatmulConfig kPreload = GetMDLConfig(false, false, 2);
constexpr MatmulConfig kUnits = GetMDLConfig(false, false, 0, false, false, false, true);
constexpr MatmulConfig kReordered =
    GetMDLConfig(false, false, 0, false, false, false, false, true, true, false, false, true);
constexpr MatmulConfig kKnownShape =
    GetMMConfig<MatmulConfigMode::CONFIG_MDL>(MatmulShapeParams{128, 1280, 64, 128, 256, 64});
constexpr auto kKnown = GetMatmulApiTiling<Gm<half>, Gm<half>, Gm<float>, Gm<float>>(kKnownShape);

struct Buffers {
  uint8_t *a, *b, *c, *workspace;
};

/// C in shares of singleCoreM x singleCoreN, or of singleCoreK with sums in global memory.
template <typename T, typename C, bool is_turned, const auto& config>
void share(const Buffers& x, TCubeTiling& t) {
  TPipe pipe;
  Matmul<Gm<T>, Gm<T, is_turned>, Gm<C>, Gm<C>, config> mm;
  REGIST_MATMUL_OBJ(&pipe, GetSysWorkSpacePtr(), mm, &t);
  const int32_t down = (t.M + t.singleCoreM - 1) / t.singleCoreM;
  const int32_t across = (t.N + t.singleCoreN - 1) / t.singleCoreN;
  const int32_t index = static_cast<int32_t>(GetBlockIdx());
  const int32_t m = index % down * t.singleCoreM;
  const int32_t n = index / down % across * t.singleCoreN;
  const int32_t k = index / down / across * t.singleCoreK;
  if (k >= t.Ka) return;
  mm.SetTensorA(tensor<T>(x.a, static_cast<uint64_t>(m) * t.Ka + k));
  const uint64_t b = is_turned ? static_cast<uint64_t>(n) * t.Kb + k : static_cast<uint64_t>(k) * t.N + n;
  mm.SetTensorB(tensor<T>(x.b, b), is_turned);
  mm.SetTail(std::min(t.singleCoreM, t.M - m), std::min(t.singleCoreN, t.N - n), t.singleCoreK);
  mm.IterateAll(tensor<C>(x.c, static_cast<uint64_t>(m) * t.N + n), t.singleCoreK < t.Ka ? 1 : 0);
  mm.End();
}

#ifdef HAND_OVER
constexpr uint32_t kRows = 24;  // that a vector core works on at a time
constexpr uint64_t kDone = 5, kRoom = 3;

/// int8 blocks go through slots in global memory to the vector cores, which scale them, apply GELU and narrow them.
void hand_over(const Buffers& x, TCubeTiling& t, uint32_t slots) {
  constexpr uint32_t kM = 128, kN = 256;
  TPipe pipe;
  const uint32_t core = GetBlockIdx() / (g_coreType == AIV ? GetTaskRation() : 1);
  const uint32_t blocks = static_cast<uint32_t>(t.N) / kN;
  const auto slot = [&](uint32_t task) { return static_cast<uint64_t>(core + task % slots * GetBlockNum()) * kM * kN; };
  if (g_coreType == AIC) {
    using B = MatmulType<TPosition::GM, CubeFormat::NZ, int8_t>;
    Matmul<Gm<int8_t>, B, Gm<int32_t>, Gm<int32_t>, CFG_MDL> mm;
    REGIST_MATMUL_OBJ(&pipe, GetSysWorkSpacePtr(), mm, &t);
    // Cores that work side by side share rows of A, and have columns of B of their own.
    mm.SetTensorA(tensor<int8_t>(x.a));
    mm.SetTensorB(tensor<int8_t>(x.b, static_cast<uint64_t>(core) * t.N * t.Kb));
    for (uint32_t task = 0; mm.Iterate(); ++task) {
      if (task >= slots) CrossCoreWaitFlag(kRoom);
      mm.GetTensorC(tensor<int32_t>(x.workspace, slot(task)), 0, true);
      CrossCoreSetFlag<2, PIPE_FIX>(kDone);
    }
    for (uint32_t i = 0; i < std::min(slots, blocks); ++i) CrossCoreWaitFlag(kRoom);
    return;
  }
  TQue<TPosition::VECIN, 1> in, columns, tokens;
  TQue<TPosition::VECOUT, 1> out;
  TBuf<TPosition::VECCALC> work;
  pipe.InitBuffer(in, 2, kRows * kN * 4);
  pipe.InitBuffer(out, 2, kRows * kN * 2);
  pipe.InitBuffer(columns, 2, kN * 4);
  pipe.InitBuffer(tokens, 2, kRows * 4);
  pipe.InitBuffer(work, 4 * kRows * kN * 4);
  const auto part = [&](uint32_t index, uint32_t count) {
    return work.GetWithOffset<float>(count, index * kRows * kN * 4);
  };
  const LocalTensor<float> scaled = part(0, kRows * kN), of_row = part(1, kRows * kN), y32 = part(3, kRows * kN);
  const LocalTensor<float> product = part(2, kRows * kN);
  const auto scratch = [&](uint32_t index) {
    return work.GetWithOffset<uint8_t>(2 * kRows * kN * 4, index * kRows * kN * 4);
  };
  // The scales' values do not matter here; they are read where C will be written.
  const auto read = [&](TQue<TPosition::VECIN, 1>& queue, uint64_t element, uint32_t count) {
    LocalTensor<float> scales = queue.AllocTensor<float>();
    DataCopy(scales, tensor<float>(x.c, element), count);
    queue.EnQue(scales);
    return queue.DeQue<float>();
  };
  for (uint32_t task = 0; task < blocks; ++task) {
    LocalTensor<float> of_column = read(columns, task * kN, kN);
    CrossCoreWaitFlag(kDone);
    for (uint32_t row = 0, turn = 1; row < kM; row += kRows, ++turn) {
      if (turn % GetTaskRation() != GetSubBlockIdx()) continue;
      const uint32_t count = std::min(kRows, kM - row) * kN;
      LocalTensor<int32_t> sums = in.AllocTensor<int32_t>();
      DataCopy(sums, tensor<int32_t>(x.workspace, slot(task) + row * kN), count);
      in.EnQue(sums);
      LocalTensor<float> token = read(tokens, row, kRows);
      sums = in.DeQue<int32_t>();
      const uint32_t rows_now = count / kN;
      const uint32_t wide[2] = {rows_now, kN}, narrow[2] = {rows_now, 1};
      LocalTensor<uint8_t> late = scratch(2), early = scratch(0);
      BroadCast<float, 2, 1>(of_row, token, wide, narrow, late);
      tokens.FreeTensor(token);
      AscendDequant(scaled, sums, of_column, late, {rows_now, kN, kN});
      PipeBarrier<PIPE_V>();
      in.FreeTensor(sums);
      Mul(product, scaled, of_row, count);
      PipeBarrier<PIPE_V>();
      FasterGelu(y32, product, early, count);
      PipeBarrier<PIPE_V>();
      LocalTensor<half> y = out.AllocTensor<half>();
      Cast(y, y32, RoundMode::CAST_NONE, count);
      PipeBarrier<PIPE_V>();
      out.EnQue(y);
      y = out.DeQue<half>();
      DataCopyParams rows;
      rows.blockCount = static_cast<uint16_t>(count / kN);
      rows.blockLen = kN * 2 / 32;
      rows.dstStride = static_cast<uint16_t>((t.N - kN) * 2 / 32);
      DataCopy(tensor<half>(x.c, (static_cast<uint64_t>(core) * kM + row) * t.N + task * kN), y, rows);
      out.FreeTensor(y);
    }
    columns.FreeTensor(of_column);
    CrossCoreSetFlag<2, PIPE_MTE2>(kRoom);
  }
}
#endif

}  // namespace

extern "C" __global__ __aicore__ void kernel(GM_ADDR a, GM_ADDR b, GM_ADDR c, GM_ADDR workspace, GM_ADDR tiling,
                                             int form) {
  TCubeTiling t = *reinterpret_cast<TCubeTiling*>(tiling);
  const Buffers x{a, b, c, workspace};
#ifdef HAND_OVER
  hand_over(x, t, static_cast<uint32_t>(form));
#else
  switch (form) {
    case 0: return share<half, half, true, CFG_NORM>(x, t);
    case 1: return share<half, float, false, CFG_NORM>(x, t);
    case 2: return share<half, float, false, CFG_MDL>(x, t);
    case 3: return share<half, float, false, kPreload>(x, t);
    case 5: return share<half, float, false, kUnits>(x, t);
    case 6: return share<half, float, false, kReordered>(x, t);
#ifndef ON_REQUEST
    case 4: return share<half, float, false, kKnown>(x, t);
#endif
  }
#endif
}
