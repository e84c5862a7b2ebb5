// Kernel: C = A W^T of int8, where of every four neighbours in a row of W two are kept (MmadWithSparse). Cores share
// the rows of A. The kept weights and their indices lie as the chip's documents have them.
#define ASCENDC_CUBE_ONLY
#include "kernel_operator.h"
#include "lib/matmul_intf.h"

using namespace AscendC;

namespace {

constexpr int32_t kRows = 128;

template <typename T>
__aicore__ inline GlobalTensor<T> global(GM_ADDR address, int64_t element = 0) {
  GlobalTensor<T> tensor;
  tensor.SetGlobalBuffer(reinterpret_cast<__gm__ T*>(address) + element);
  return tensor;
}

}  // namespace

extern "C" __global__ __cube__ void structured_sparse(GM_ADDR a, GM_ADDR kept, GM_ADDR indices, GM_ADDR c,
                                                      GM_ADDR plan) {
  using A = MatmulType<TPosition::GM, CubeFormat::ND, int8_t>;
  using W = SparseMatmulType<TPosition::GM, TPosition::GM, CubeFormat::ND, int8_t, true>;
  using C = MatmulType<TPosition::GM, CubeFormat::ND, int32_t>;
  const int32_t m = global<int32_t>(plan).GetValue(0);
  const int32_t n = global<int32_t>(plan).GetValue(1);
  const int32_t k = global<int32_t>(plan).GetValue(2);
  TCubeTiling tiling;
  tiling.usedCoreNum = 1;
  tiling.M = m;
  tiling.N = n;
  tiling.Ka = tiling.Kb = k;
  tiling.singleCoreM = kRows;
  tiling.singleCoreN = n;
  tiling.singleCoreK = k;
  tiling.baseM = kRows;
  tiling.baseN = 128;
  tiling.baseK = 64;
  tiling.depthA1 = tiling.depthB1 = 4;
  tiling.stepM = tiling.stepN = 1;
  tiling.stepKa = tiling.stepKb = 2;
  tiling.dbL0A = tiling.dbL0B = 2;
  tiling.dbL0C = 1;
  TPipe pipe;
  Matmul<A, W, C, C, CFG_MDL> object;
  REGIST_MATMUL_OBJ(&pipe, GetSysWorkSpacePtr(), object, &tiling);
  for (int32_t row = static_cast<int32_t>(GetBlockIdx()) * kRows; row < m;
       row += static_cast<int32_t>(GetBlockNum()) * kRows) {
    object.SetTensorA(global<int8_t>(a, static_cast<int64_t>(row) * k));
    object.SetTensorB(global<int8_t>(kept), true);
    object.SetSparseIndex(global<uint8_t>(indices));
    object.SetTail(m - row < kRows ? m - row : kRows, n, k);
    object.IterateAll(global<int32_t>(c, static_cast<int64_t>(row) * n));
  }
  object.End();
}
