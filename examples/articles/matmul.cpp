// c = a b, halves, by a Matmul object: what makes it fast is how the host cuts the matrices, so both kernels are one
// text with two tilings.
#define ASCENDC_CUBE_ONLY
#include "kernel_operator.h"
#include "lib/matmul_intf.h"

using namespace AscendC;

namespace {

using Half = MatmulType<TPosition::GM, CubeFormat::ND, half>;

struct Cut {
  int32_t base_m, base_n, base_k;  ///< in L0
  int32_t steps, buffers;          ///< of base_k in L1 at a time, and how many of those; buffers in L0A and L0B
};

__aicore__ inline GlobalTensor<half> matrix(GM_ADDR address, uint64_t element) {
  GlobalTensor<half> tensor;
  tensor.SetGlobalBuffer(reinterpret_cast<__gm__ half*>(address) + element);
  return tensor;
}

/// Blocks of base_m x base_n of c, one core after the other down the columns of blocks.
template <const auto& config>
__aicore__ inline void multiply(GM_ADDR a, GM_ADDR b, GM_ADDR c, int32_t size, const Cut& cut) {
  TCubeTiling tiling;
  tiling.usedCoreNum = 1;
  tiling.M = tiling.N = tiling.Ka = tiling.Kb = size;
  tiling.singleCoreM = cut.base_m;
  tiling.singleCoreN = cut.base_n;
  tiling.singleCoreK = size;
  tiling.baseM = cut.base_m;
  tiling.baseN = cut.base_n;
  tiling.baseK = cut.base_k;
  tiling.depthA1 = tiling.depthB1 = cut.steps * cut.buffers;
  tiling.stepM = tiling.stepN = 1;
  tiling.stepKa = tiling.stepKb = cut.steps;
  tiling.dbL0A = tiling.dbL0B = cut.buffers;
  tiling.dbL0C = 1;
  TPipe pipe;
  Matmul<Half, Half, Half, Half, config> object;
  REGIST_MATMUL_OBJ(&pipe, GetSysWorkSpacePtr(), object, &tiling);
  const int32_t down = size / cut.base_m;
  const int32_t across = size / cut.base_n;
  for (int32_t block = static_cast<int32_t>(GetBlockIdx()); block < down * across;
       block += static_cast<int32_t>(GetBlockNum())) {
    const int32_t m = block % down * cut.base_m;
    const int32_t n = block / down * cut.base_n;
    object.SetTensorA(matrix(a, static_cast<uint64_t>(m) * size));
    object.SetTensorB(matrix(b, n));
    object.IterateAll(matrix(c, static_cast<uint64_t>(m) * size + n));
  }
  object.End();
}

}  // namespace

/// Base blocks of 64 x 64 x 64, one buffer: each is loaded, multiplied, and the next one waits.
extern "C" __global__ __cube__ void matmul_naive(GM_ADDR a, GM_ADDR b, GM_ADDR c, uint32_t size) {
  multiply<CFG_NORM>(a, b, c, static_cast<int32_t>(size), {64, 64, 64, 1, 1});
}

/// Base blocks that fill L0C, four steps of k a copy, two buffers on both levels.
extern "C" __global__ __cube__ void matmul_optimised(GM_ADDR a, GM_ADDR b, GM_ADDR c, uint32_t size) {
  multiply<CFG_MDL>(a, b, c, static_cast<int32_t>(size), {128, 256, 64, 4, 2});
}
