// Kernel: products of matrices on the cube cores, with the Matmul object.
#define ASCENDC_CUBE_ONLY
#include "global_memory.h"
#include "kernel_operator.h"
#include "lib/matmul_intf.h"
#include "plans.h"

using namespace AscendC;
using namespace matmul;
using opkit::kernels::global;
using opkit::kernels::MatmulPlan;

namespace {

__aicore__ inline TCubeTiling tiling_of(const MatmulPlan& p) {
  TCubeTiling t;
  t.usedCoreNum = 1;
  t.M = p.m;
  t.N = p.n;
  t.Ka = t.Kb = p.k;
  t.singleCoreM = p.single_m;
  t.singleCoreN = p.single_n;
  t.singleCoreK = p.k;
  t.baseM = p.base_m;
  t.baseN = p.base_n;
  t.baseK = p.base_k;
  t.depthA1 = t.depthB1 = 2;
  t.stepM = t.stepN = t.stepKa = t.stepKb = 1;
  t.dbL0A = t.dbL0B = 2;
  t.dbL0C = 1;
  return t;
}

// Rows of 65536 elements and more are read too.
constexpr MatmulConfig kAnyRow = GetNormalConfig(true);

template <typename T, typename Result>
__aicore__ inline void multiply(GM_ADDR a, GM_ADDR b, GM_ADDR c, const MatmulPlan& p) {
  using A = MatmulType<TPosition::GM, CubeFormat::ND, T, true>;
  using C = MatmulType<TPosition::GM, CubeFormat::ND, Result>;
  const TCubeTiling tiling = tiling_of(p);
  TPipe pipe;
  Matmul<A, A, C, C, kAnyRow> mm;
  REGIST_MATMUL_OBJ(&pipe, GetSysWorkSpacePtr(), mm, &tiling);
  const int64_t rows = (p.m + p.single_m - 1) / p.single_m;
  const int64_t columns = (p.n + p.single_n - 1) / p.single_n;
  const int64_t cores = GetBlockNum();
  for (int64_t item = GetBlockIdx(); item < p.batch * rows * columns; item += cores) {
    const int64_t m0 = item % rows * p.single_m;
    const int64_t n0 = item / rows % columns * p.single_n;
    const int64_t batch = item / rows / columns;
    const int64_t m_left = p.m - m0;
    const int64_t n_left = p.n - n0;
    mm.SetOrgShape(p.is_a_transposed ? p.a_row : p.m, p.is_b_transposed ? p.n : p.b_row,
                   p.is_a_transposed ? p.k : p.a_row, p.is_b_transposed ? p.b_row : p.k, p.c_row);
    mm.SetTensorA(global<T>(a, batch * p.a_batch + (p.is_a_transposed ? m0 : m0 * p.a_row)), p.is_a_transposed);
    mm.SetTensorB(global<T>(b, batch * p.b_batch + (p.is_b_transposed ? n0 * p.b_row : n0)), p.is_b_transposed);
    mm.SetSingleShape(m_left < p.single_m ? m_left : p.single_m, n_left < p.single_n ? n_left : p.single_n, p.k);
    mm.IterateAll(global<Result>(c, batch * p.c_batch + m0 * p.c_row + n0));
  }
  mm.End();
}

}  // namespace

extern "C" __global__ __aicore__ void matmul_batched(GM_ADDR a, GM_ADDR b, GM_ADDR c, GM_ADDR plan) {
  const MatmulPlan& p = *reinterpret_cast<__gm__ const MatmulPlan*>(plan);
  switch (p.kind * 2 + p.is_float_result) {
    case 0: multiply<half, half>(a, b, c, p); break;
    case 1: multiply<half, float>(a, b, c, p); break;
    case 2: multiply<bfloat16_t, bfloat16_t>(a, b, c, p); break;
    case 3: multiply<bfloat16_t, float>(a, b, c, p); break;
    default: multiply<float, float>(a, b, c, p); break;
  }
}
