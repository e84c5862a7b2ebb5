// A product whose blocks pass a leaky ReLU on the vector cores. Nothing says that the kernel is a mixed one.
#include "kernel_operator.h"
#include "lib/matmul_intf.h"

using namespace AscendC;

using Half = MatmulType<TPosition::GM, CubeFormat::ND, half>;

extern "C" __global__ __aicore__ void multiplied(GM_ADDR a, GM_ADDR b, GM_ADDR c, GM_ADDR workspace, GM_ADDR tiling) {
  GET_TILING_DATA(data, tiling);
  const TCubeTiling& t = data.product;
  TPipe pipe;
  Matmul<Half, Half, MatmulType<TPosition::VECIN, CubeFormat::ND, float>> product;
  REGIST_MATMUL_OBJ(&pipe, GetSysWorkSpacePtr(), product, &t);
  const int rows = (t.M + t.singleCoreM - 1) / t.singleCoreM;
  const int m = GetBlockIdx() % rows * t.singleCoreM, n = GetBlockIdx() / rows * t.singleCoreN;
  if (n >= t.N) return;
  GlobalTensor<half> left, right;
  GlobalTensor<float> result;
  left.SetGlobalBuffer((__gm__ half*)a + m * t.Ka);
  right.SetGlobalBuffer((__gm__ half*)b + n);
  result.SetGlobalBuffer((__gm__ float*)c + m * t.N + n);
  product.SetTail(t.M - m < t.singleCoreM ? t.M - m : t.singleCoreM, t.N - n < t.singleCoreN ? t.N - n : t.singleCoreN);
  product.SetTensorA(left);
  product.SetTensorB(right);
  TQue<TPosition::VECIN, 1> blocks;
  TQue<TPosition::VECOUT, 1> outs;
  pipe.InitBuffer(blocks, 1, t.baseM * t.baseN * sizeof(float));
  pipe.InitBuffer(outs, 1, t.baseM * t.baseN * sizeof(float));
  for (int block = 0; product.Iterate(); ++block) {
    LocalTensor<float> sums = blocks.AllocTensor<float>();
    product.GetTensorC(sums, 0, true);
    blocks.EnQue(sums);
    sums = blocks.DeQue<float>();
    LocalTensor<float> out = outs.AllocTensor<float>();
    LeakyRelu(out, sums, data.slope, t.baseM * t.baseN);
    blocks.FreeTensor(sums);
    outs.EnQue(out);
    out = outs.DeQue<float>();
    const int down = t.singleCoreM / t.baseM;
    const int at = block % down * t.baseM * t.N + block / down * t.baseN;
    DataCopy(result[at], out, DataCopyParams(t.baseM, t.baseN / 8, 0, (t.N - t.baseN) / 8));
    outs.FreeTensor(out);
  }
  product.End();
}
