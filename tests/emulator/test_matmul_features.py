"""Matmul objects on a cube core: the rarer operands, orders and ways in and out, against NumPy."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from opkit.errors import KernelFault
from opkit.sanitizer import Check

from .test_matmul import NO_BIAS, numbers, tiling

KERNEL = """
#define ASCENDC_CUBE_ONLY
#include "lib/matmul_intf.h"
template <CubeFormat format, typename T, bool is_transposed = false, LayoutMode layout = LayoutMode::NONE>
using Gm = MatmulType<TPosition::GM, format, T, is_transposed, layout>;
template <typename T>
inline GlobalTensor<T> tensor(const void* address) {
  GlobalTensor<T> gm;
  gm.SetGlobalBuffer(reinterpret_cast<__gm__ T*>(const_cast<void*>(address)));
  return gm;
}
constexpr auto ND = CubeFormat::ND;
struct Arguments {
  uint8_t *a, *b, *bias, *c;
};

// Matrices whose rows are `spread` times as long in memory as the tiling says.
inline void copy_a(const LocalTensor<int8_t>& block, const __gm__ void* gm, int row, int column, int m, int k,
                   const uint64_t tiling, const uint64_t spread) {
  const auto* t = reinterpret_cast<const TCubeTiling*>(tiling);
  const int length = t->Ka * spread;
  DataCopy(block.ReinterpretCast<half>(), tensor<half>(gm)[row * t->baseM * length + column * t->baseK],
           Nd2NzParams(1, m, k, 0, length, (m + 15) / 16 * 16, 1, 0));
}
inline void copy_b(const LocalTensor<int8_t>& block, const __gm__ void* gm, int row, int column, int k, int n,
                   const uint64_t tiling, const uint64_t spread) {
  const auto* t = reinterpret_cast<const TCubeTiling*>(tiling);
  const int length = t->N * spread;
  DataCopy(block.ReinterpretCast<half>(), tensor<half>(gm)[row * t->baseK * length + column * t->baseN],
           Nd2NzParams(1, k, n, 0, length, (k + 15) / 16 * 16, 1, 0));
}

// Carries a block out to rows that are as long as the number says; bytes with the quantisation that Matmul hands over.
template <typename T>
inline void copy_out(const __gm__ void* gm, const LocalTensor<int8_t>& co1, const void* given, const uint64_t tiling,
                     const uint64_t row) {
  const auto* t = reinterpret_cast<const TCubeTiling*>(tiling);
  const auto& params = *reinterpret_cast<const DataCopyOutParams*>(given);
  FixpipeParamsV220 fixpipe;
  fixpipe.nSize = params.oriNSize;
  fixpipe.mSize = params.burstLen * 32 / (16 * sizeof(float));
  fixpipe.srcStride = (fixpipe.mSize + 15) / 16 * 16;
  fixpipe.dstStride = row;
  if constexpr (sizeof(T) == 1) {
    fixpipe.quantPre = QuantMode_t::VQF322B8_PRE;
    const LocalTensor<uint64_t> scales(TPosition::A1, params.cbufWorkspaceAddr, (params.oriNSize + 15) / 16 * 16);
    Fixpipe<T, float>(tensor<T>(gm), co1.ReinterpretCast<float>(), scales, fixpipe);
  } else {
    Fixpipe<T, float>(tensor<T>(gm), co1.ReinterpretCast<float>(), fixpipe);
  }
}

template <typename Object>
inline void finish(Object& mm, const Arguments& x) {
  mm.IterateAll(tensor<typename Object::DstT>(x.c));
  mm.End();
}

template <typename A, typename B, typename C, typename Bias = Gm<ND, float>, const auto& config = CFG_NORM,
          typename CallBack = MatmulCallBackFunc<>>
struct Case {
  using Object = Matmul<A, B, C, Bias, config, CallBack>;
  template <typename Prepare>
  static void run(const Arguments& x, const TCubeTiling& t, Prepare&& prepare) {
    TPipe pipe;
    Object mm;
    REGIST_MATMUL_OBJ(&pipe, GetSysWorkSpacePtr(), mm, &t);
    mm.SetTensorA(tensor<typename A::T>(x.a), A::isTrans);
    mm.SetTensorB(tensor<typename B::T>(x.b), B::isTrans);
    if (t.isBias) mm.SetBias(tensor<typename Bias::T>(x.bias));
    prepare(mm);
  }
};

constexpr MatmulConfig OUTER = GetNormalConfig(false, false, false, BatchMode::BATCH_LESS_THAN_L1, true,
                                               IterateOrder::ORDER_N, ScheduleType::OUTER_PRODUCT);
constexpr MatmulConfig OUTER_M = GetNormalConfig(false, false, false, BatchMode::BATCH_LESS_THAN_L1, true,
                                                 IterateOrder::ORDER_M, ScheduleType::OUTER_PRODUCT);
constexpr MatmulConfig partial() {
  MatmulConfig config = GetMDLConfig();
  config.isPartialOutput = true;
  return config;
}
constexpr MatmulConfig PARTIAL = partial();
constexpr MatmulConfig unit_flags() {
  MatmulConfig config = GetMDLConfig();
  config.enUnitFlag = true;
  return config;
}
constexpr MatmulConfig UNIT_FLAGS = unit_flags();
constexpr MatmulConfig split() {
  MatmulConfig config = GetNormalConfig();
  config.isEnableChannelSplit = true;
  return config;
}
constexpr MatmulConfig SPLIT = split();
using Half = Gm<ND, half>;
using Float = Gm<ND, float>;
using InL1 = MatmulType<TPosition::TSCM, CubeFormat::NZ, half>;

// One block, in two parts of K; nothing carries the first part's sums out.
template <const auto& config>
inline void sum_in_two_parts(const Arguments& x, const TCubeTiling& t, int first) {
  Case<Half, Half, Float, Float, config>::run(x, t, [&](auto& mm) {
    mm.SetTail(t.M, t.N, first);
    mm.Iterate();
    mm.SetTail(t.M, t.N, t.Ka - first);
    mm.SetTensorA(tensor<half>(x.a)[first]);
    mm.SetTensorB(tensor<half>(x.b)[first * t.N]);
    mm.Iterate(true);
    mm.GetTensorC(tensor<float>(x.c));
    mm.End();
  });
}

extern "C" __global__ __aicore__ void kernel(GM_ADDR a, GM_ADDR b, GM_ADDR bias, GM_ADDR c, GM_ADDR tiling, int kind,
                                             int number) {
  const TCubeTiling t = *reinterpret_cast<TCubeTiling*>(tiling);
  const Arguments x{a, b, bias, c};
  const auto all = [&](auto& mm) { finish(mm, x); };
  switch (kind) {
    case 0: return Case<Gm<CubeFormat::VECTOR, half>, Half, Float>::run(x, t, all);
    case 1: return Case<Half, Half, Float, Half>::run(x, t, all);
    case 2:
      return Case<Half, Half, Float, Float, CFG_NORM, MatmulCallBackFunc<nullptr, copy_a, copy_b>>::run(
          x, t, [&](auto& mm) {
            mm.SetUserDefInfo(reinterpret_cast<uint64_t>(&t));
            mm.SetSelfDefineData(number);
            finish(mm, x);
          });
    case 3: return Case<Half, Half, Float, Float, OUTER>::run(x, t, all);
    case 4:
      return Case<Half, Half, Float>::run(x, t, [&](auto& mm) {
        mm.SetTail(t.singleCoreM - number, t.singleCoreN - number, t.singleCoreK - number);
        finish(mm, x);
      });
    case 5: {
      using Normal = Gm<ND, half, false, LayoutMode::NORMAL>;
      using Turned = Gm<ND, half, true, LayoutMode::NORMAL>;
      using Sums = Gm<ND, float, false, LayoutMode::NORMAL>;
      return Case<Normal, Turned, Sums>::run(x, t, [&](auto& mm) {
        mm.SetBatchNum(number, number);
        mm.SetNBatchOutNum(number);
        mm.IterateBatch(tensor<float>(c), false, 0, false);
        mm.End();
      });
    }
    case 6:
      return Case<Half, Half, Float>::run(x, t, [&](auto& mm) {
        mm.SetTensorA(static_cast<half>(static_cast<float>(number)));
        finish(mm, x);
      });
    case 7:
      return Case<Half, Half, Float>::run(x, t, [&](auto& mm) {
        while (mm.Iterate()) mm.GetTensorC(tensor<float>(c), 1);
        finish(mm, x);
      });
    case 8:
      return Case<Float, Float, Float>::run(x, t, [&](auto& mm) {
        mm.SetHF32(number > 0, number == 2 ? 1 : 0);
        finish(mm, x);
      });
    case 10: {
      TPipe pipe;
      MatmulImpl<Half, Half, Float, Float, CFG_MDL> mm;
      mm.SetSubBlockIdx(0);
      mm.Init(&t, &pipe);
      mm.SetOrgShape(t.M, t.N, t.Ka);
      mm.SetSingleShape(t.M, t.N, t.Ka);
      mm.SetTensorA(tensor<half>(a));
      mm.SetTensorB(tensor<half>(b));
      mm.SetBias(tensor<float>(bias));
      mm.DisableBias();
      return finish(mm, x);
    }
    case 11:
    case 12: {
      const auto pairs = [&](auto& mm) {
        int steps = 0;
        for (; mm.Iterate(); ++steps) mm.GetTensorC(tensor<float>(c), number);
        tensor<float>(bias).SetValue(0, steps);
      };
      if (kind == 11) return Case<Half, Half, Float, Float, OUTER_M>::run(x, t, pairs);
      return Case<Half, Half, Float, Float, OUTER>::run(x, t, pairs);
    }
    case 13: {
      // (a b) b: the first product goes to L1 and is the second one's A. Rows of a are `number` columns of its memory.
      TPipe pipe;
      Matmul<Gm<ND, half, true>, Half, InL1> first;
      Matmul<InL1, Half, Float> second;
      REGIST_MATMUL_OBJ(&pipe, GetSysWorkSpacePtr(), first, &t, second, &t);
      TSCM<TPosition::GM, 1> scm;
      pipe.InitBuffer(scm, 1, t.M * t.N * sizeof(half));
      LocalTensor<half> between = scm.AllocTensor<half>();
      first.SetOrgShape(number, t.N, t.Ka);
      first.SetTensorA(tensor<half>(a), true);
      first.SetTensorB(tensor<half>(b));
      first.IterateAll(between);
      PipeBarrier<PIPE_ALL>();
      second.SetTensorA(between);
      second.SetTensorB(tensor<half>(b));
      second.IterateAll(tensor<float>(c));
      second.End();
      scm.FreeTensor(between);
      return;
    }
    case 14:
      return Case<Half, Half, Float, Float, CFG_NORM, MatmulCallBackFunc<copy_out<float>>>::run(
          x, t, [&](auto& mm) {
            mm.SetUserDefInfo(reinterpret_cast<uint64_t>(&t));
            mm.SetSelfDefineData(number);
            finish(mm, x);
          });
    case 15:
      return Case<Half, Half, Gm<ND, int8_t>, Float, CFG_NORM, MatmulCallBackFunc<copy_out<int8_t>>>::run(
          x, t, [&](auto& mm) {
            mm.SetQuantVector(tensor<uint64_t>(bias));
            mm.SetSelfDefineData(number);
            finish(mm, x);
          });
    case 16: return Case<Half, Half, Gm<CubeFormat::NZ, float>, Float, SPLIT>::run(x, t, all);
    case 17:
      return Case<Half, Half, Float, Float, PARTIAL>::run(x, t, [&](auto& mm) {
        while (mm.Iterate()) mm.GetTensorC(tensor<float>(c), 1);
        mm.End();
      });
    case 18: return sum_in_two_parts<CFG_NORM>(x, t, number);
    case 19: return sum_in_two_parts<UNIT_FLAGS>(x, t, number);
    case 9: {
      using Sparse = SparseMatmulType<TPosition::GM, TPosition::GM, ND, int8_t, true>;
      return Case<Gm<ND, int8_t>, Sparse, Gm<ND, int32_t>, Gm<ND, int32_t>, CFG_MDL>::run(x, t, [&](auto& mm) {
        mm.SetSparseIndex(tensor<uint8_t>(bias));
        finish(mm, x);
      });
    }
  }
}
"""


@pytest.fixture(scope="module")
def multiply(compile_kernel: Callable[..., object]) -> Callable[..., np.ndarray]:
    """Return C of one multiplication, launched under every check."""
    kernel = compile_kernel(KERNEL, mode="Cube")

    def run(
        kind: int,
        a: np.ndarray,
        b: np.ndarray,
        c: np.ndarray,
        t: np.ndarray,
        *,
        bias: np.ndarray = NO_BIAS,
        number: int = 0,
    ) -> np.ndarray:
        numbers = (np.int32(kind).tobytes(), np.int32(number).tobytes())
        with Check(()) as checks:
            kernel(np.ascontiguousarray(a), np.ascontiguousarray(b), bias, c, t, *numbers)
        assert not checks.findings
        return c

    return run


def product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return a.astype(np.float32) @ b.astype(np.float32)


def operands(m: int, n: int, k: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return (
        numbers((m, k), np.float16, 1),
        numbers((k, n), np.float16, 2),
        np.zeros((m, n), np.float32),
    )


@pytest.mark.parametrize(("n", "k"), [(64, 256), (40, 100), (16, 16)])
def test_a_vector_times_a_matrix(multiply, n: int, k: int) -> None:
    a, b, c = operands(1, n, k)
    bias = numbers((n,), np.float32, 3)
    t = tiling(1, n, k, (16, 32, 64), isBias=1)
    assert np.array_equal(multiply(0, a, b, c, t, bias=bias), product(a, b) + bias)


@pytest.mark.parametrize("n", [32, 48, 40, 24])
def test_a_half_bias_is_widened(multiply, n: int) -> None:
    a, b, c = operands(32, n, 32)
    bias = numbers((n,), np.float16, 3)
    t = tiling(32, n, 32, (16, 32, 32), isBias=1)
    assert np.array_equal(multiply(1, a, b, c, t, bias=bias), product(a, b) + bias)


def test_the_kernels_own_copies_into_l1(multiply) -> None:
    m, n, k = 48, 40, 96
    a, b, c = operands(m, n, k)
    spread_a, spread_b = np.zeros((m, 2 * k), np.float16), np.zeros((k, 2 * n), np.float16)
    spread_a[:, :k], spread_b[:, :n] = a, b
    t = tiling(m, n, k, (32, 32, 32))
    assert np.array_equal(multiply(2, spread_a, spread_b, c, t, number=2), product(a, b))


def test_the_outer_product_order_gives_the_same_matrix(multiply) -> None:
    a, b, c = operands(64, 96, 32)
    t = tiling(64, 96, 32, (32, 32, 32), dbL0C=2)
    assert np.array_equal(multiply(3, a, b, c, t), product(a, b))


@pytest.mark.parametrize(("kind", "steps"), [(11, 3 * 2), (12, 2 * 3)])
def test_the_outer_product_iterates_over_pairs_of_blocks(multiply, kind: int, steps: int) -> None:
    # Three by three blocks, the last ones smaller: the third column (row) is a pair of its own.
    m, n, k = 80, 72, 64
    a, b, c = operands(m, n, k)
    count = np.zeros(1, np.float32)
    t = tiling(m, n, k, (32, 32, 32), dbL0C=2, iterateOrder=kind - 11)
    assert np.array_equal(multiply(kind, a, b, c, t, bias=count), product(a, b))
    assert count[0] == steps
    assert np.array_equal(multiply(kind, a, b, c, t, bias=count, number=1), 2 * product(a, b))


def test_pairs_of_blocks_need_both_parts_of_l0c(multiply) -> None:
    a, b, c = operands(32, 64, 32)
    with pytest.raises(KernelFault, match="dbL0C is to be 2"):
        multiply(11, a, b, c, tiling(32, 64, 32, (32, 32, 32)))


def test_a_product_in_l1_is_the_next_ones_operand(multiply) -> None:
    a, b, c = operands(64, 64, 64)
    a, b = a % 2, b % 2
    t = tiling(64, 64, 64, (32, 32, 32))
    wider = np.full((64, 80), 9, np.float16)
    wider[:, :64] = a.T
    assert np.array_equal(multiply(13, wider, b, c, t, number=80), product(product(a, b), b))


VECTOR_IN_L1 = """
#include "lib/matmul_intf.h"
extern "C" __global__ __aicore__ void kernel(GM_ADDR a, GM_ADDR b, GM_ADDR c, GM_ADDR workspace, GM_ADDR tiling) {
  const TCubeTiling t = *reinterpret_cast<TCubeTiling*>(tiling);
  using Half = MatmulType<TPosition::GM, CubeFormat::ND, half>;
  using InL1 = MatmulType<TPosition::TSCM, CubeFormat::NZ, half>;
  TPipe pipe;
  SetSysWorkspace(workspace);
  Matmul<Half, Half, InL1> first;
  Matmul<InL1, Half, MatmulType<TPosition::GM, CubeFormat::ND, float>> second;
  REGIST_MATMUL_OBJ(&pipe, GetSysWorkSpacePtr(), first, &t, second, (void*)&t);
  if (GetSubBlockIdx() > 0) return;
  GlobalTensor<half> left, right;
  GlobalTensor<float> out;
  left.SetGlobalBuffer(reinterpret_cast<__gm__ half*>(a));
  right.SetGlobalBuffer(reinterpret_cast<__gm__ half*>(b));
  out.SetGlobalBuffer(reinterpret_cast<__gm__ float*>(c));
  TSCM<TPosition::GM, 1> scm;
  pipe.InitBuffer(scm, 1, t.M * t.N * sizeof(half));
  LocalTensor<half> between = scm.AllocTensor<half>();
  first.SetTensorA(left);
  first.SetTensorB(right);
  first.IterateAll(between);
  first.End();
  PipeBarrier<PIPE_ALL>();
  second.SetTensorA(between);
  second.SetTensorB(right);
  second.IterateAll(out);
  second.End();
  scm.FreeTensor(between);
}
"""


def test_a_vector_core_has_a_product_put_into_its_l1(compile_kernel) -> None:
    kernel = compile_kernel(VECTOR_IN_L1, mode="Mix12")
    a, b, c = operands(48, 32, 32)
    a, b = a % 2, b % 2
    workspace = np.zeros(40 << 20, np.uint8)
    kernel(a, b, c, workspace, tiling(48, 32, 32, (32, 32, 32)))
    assert np.array_equal(c, product(product(a, b), b))


def test_the_kernels_own_copies_out_of_l0c(multiply) -> None:
    m, n, k, row = 50, 40, 64, 56
    a, b, _ = operands(m, n, k)
    c = np.full((m, row), -1, np.float32)
    t = tiling(m, n, k, (32, 32, 32))
    # The block's place counts columns of C as the tiling says, the callback its own.
    multiply(14, a, b, c, tiling(m, n, k, (64, 48, 32)), number=row)
    assert np.array_equal(c[:, :n], product(a, b))
    assert (c[:, n:] == -1).all()
    scales = np.linspace(0.25, 1, n, dtype=np.float32)
    scales = (scales.view(np.uint32) & 0xFFFFE000).view(np.float32)
    bits = scales.view(np.uint32).astype(np.uint64) | np.uint64(1 << 46)
    small = np.zeros((m, n), np.int8)
    multiply(15, a, b, small, t, bias=bits, number=n)
    expected = np.clip(np.rint(np.clip(product(a, b) * scales, -256, 255)), -128, 127)
    assert np.array_equal(small, expected.astype(np.int8))


def test_channel_split_writes_fractals_of_eight_columns(multiply) -> None:
    a, b, _ = operands(48, 64, 32)
    c = np.zeros((8, 48, 8), np.float32)
    multiply(16, a, b, c, tiling(48, 64, 32, (32, 32, 32)))
    assert np.array_equal(c.transpose(1, 0, 2).reshape(48, 64), product(a, b))


def test_partial_output_comes_in_blocks_of_k(multiply) -> None:
    a, b, c = operands(50, 40, 80)
    t = tiling(50, 40, 80, (32, 32, 32), stepKa=2, stepKb=2, depthA1=4, depthB1=4)
    assert np.array_equal(multiply(17, a, b, c, t), product(a, b))


@pytest.mark.parametrize("kind", [18, 19], ids=["by_flags", "by_unit_flags"])
@pytest.mark.parametrize("first", [32, 64])
def test_a_sum_goes_on_with_other_operands(multiply, kind: int, first: int) -> None:
    a, b, c = operands(32, 32, 96)
    t = tiling(32, 32, 96, (32, 32, 32))
    assert np.array_equal(multiply(kind, a, b, c, t, number=first), product(a, b))


ON_VECTOR = """
#include "lib/matmul_intf.h"
constexpr auto ND = CubeFormat::ND;
constexpr MatmulConfig N_BATCH = GetNormalConfig(false, true);
template <typename T, bool is_transposed = false>
using Normal = MatmulType<TPosition::GM, ND, T, is_transposed, LayoutMode::NORMAL>;
template <typename T>
using Plain = MatmulType<TPosition::GM, ND, T>;
template <typename T>
inline GlobalTensor<T> tensor(GM_ADDR address) {
  GlobalTensor<T> gm;
  gm.SetGlobalBuffer(reinterpret_cast<__gm__ T*>(address));
  return gm;
}
extern "C" __global__ __aicore__ void kernel(GM_ADDR a, GM_ADDR b, GM_ADDR extra, GM_ADDR c, GM_ADDR workspace,
                                             GM_ADDR tiling, int kind, int loops) {
  const TCubeTiling t = *reinterpret_cast<TCubeTiling*>(tiling);
  TPipe pipe;
  SetSysWorkspace(workspace);
  TBuf<TPosition::VECCALC> memory;
  if (kind == 0) {
    Matmul<Normal<half>, Normal<half, true>, Normal<float>, Normal<float>, N_BATCH> mm;
    REGIST_MATMUL_OBJ(&pipe, GetSysWorkSpacePtr(), mm, &t);
    if (GetSubBlockIdx() > 0) return;
    pipe.InitBuffer(memory, 64 * 1024);
    const uint32_t size = t.BatchNum * t.M * t.N;
    LocalTensor<float> batch = memory.Get<float>(size);
    mm.SetTensorA(tensor<half>(a));
    mm.SetTensorB(tensor<half>(b), true);
    mm.SetWorkspace(tensor<float>(workspace)[8 << 20]);
    mm.template IterateNBatch<false>(loops, t.BatchNum, 1, false);
    for (int loop = 0; loop < loops; ++loop) {
      mm.template GetBatchTensorC<false>(batch, t.BatchNum, 1);
      PipeBarrier<PIPE_ALL>();
      DataCopy(tensor<float>(c)[loop * size], batch, size);
      PipeBarrier<PIPE_ALL>();
    }
    mm.End();
    return;
  }
  if (kind == 2) {
    Matmul<Plain<half>, Plain<half>, Plain<float>, Plain<float>> first, second, chosen;
    REGIST_MATMUL_OBJ(&pipe, GetSysWorkSpacePtr(), first, &t, second, &t);
    if (GetSubBlockIdx() > 0) return;
    first.SetTensorA(tensor<half>(a));
    second.SetTensorA(tensor<half>(a)[t.M * t.Ka]);
    for (int loop = 0; loop < loops; ++loop) {
      chosen = loop % 2 == 0 ? first : second;
      chosen.SetTensorB(tensor<half>(b));
      chosen.IterateAll(tensor<float>(c)[loop * t.M * t.N]);
    }
    chosen.End();
    return;
  }
  Matmul<Plain<int8_t>, Plain<int8_t>, Plain<half>, Plain<int32_t>> mm;
  REGIST_MATMUL_OBJ(&pipe, GetSysWorkSpacePtr(), mm, &t);
  if (GetSubBlockIdx() > 0) return;
  pipe.InitBuffer(memory, 4096);
  LocalTensor<int32_t> bias = memory.GetWithOffset<int32_t>(t.N, 0);
  LocalTensor<uint64_t> scales = memory.GetWithOffset<uint64_t>(t.N, 1024);
  DataCopy(bias, tensor<int32_t>(extra), t.N);
  DataCopy(scales.ReinterpretCast<int32_t>(), tensor<int32_t>(extra)[t.N], t.N * 2);
  PipeBarrier<PIPE_ALL>();
  mm.SetTensorA(tensor<int8_t>(a));
  mm.SetTensorB(tensor<int8_t>(b));
  mm.SetBias(bias);
  mm.SetQuantVector(scales);
  mm.IterateAll(tensor<half>(c));
  mm.End();
}
"""


@pytest.fixture(scope="module")
def ask(compile_kernel: Callable[..., object]) -> Callable[..., None]:
    """Return the launch of a vector core's objects."""
    kernel = compile_kernel(ON_VECTOR, mode="Mix12")

    def run(kind: int, loops: int, *arrays: np.ndarray, t: np.ndarray) -> None:
        workspace = np.zeros(48 << 20, np.uint8)
        kernel(*arrays, workspace, t, np.int32(kind).tobytes(), np.int32(loops).tobytes())

    return run


def test_batches_come_one_after_another_without_waiting(ask) -> None:
    loops, batch, m, n, k = 3, 2, 32, 24, 48
    a = numbers((loops * batch, m, k), np.float16, 1)
    b = numbers((loops, n, k), np.float16, 2)
    c = np.zeros((loops * batch, m, n), np.float32)
    t = tiling(m, n, k, (32, 32, 48), BatchNum=batch)
    ask(0, loops, a, b, NO_BIAS, c, t=t)
    expected = a.astype(np.float32) @ np.repeat(b, batch, 0).transpose(0, 2, 1).astype(np.float32)
    assert np.array_equal(c, expected)


def test_an_object_is_assigned_with_what_was_set(ask) -> None:
    m, n, k = 40, 24, 48
    a, b = numbers((2, m, k), np.float16, 1), numbers((k, n), np.float16, 2)
    c = np.zeros((3, m, n), np.float32)
    ask(2, 3, a, b, NO_BIAS, c, t=tiling(m, n, k, (32, 32, 48)))
    expected = a.astype(np.float32) @ b.astype(np.float32)
    assert np.array_equal(c, expected[[0, 1, 0]])


def test_bias_and_quantisation_of_a_vector_core_come_from_its_ub(ask) -> None:
    m, n, k = 40, 64, 96
    a, b = numbers((m, k), np.int8, 1), numbers((k, n), np.int8, 2)
    bias = numbers((n,), np.int32, 3)
    scales = np.float32([0.5, 0.25, 2, 1] * (n // 4))
    bits = scales.view(np.uint32).astype(np.uint64)
    c = np.zeros((m, n), np.float16)
    ask(
        1,
        0,
        a,
        b,
        np.concatenate([bias, bits.view(np.int32)]),
        c,
        t=tiling(m, n, k, (32, 32, 32), isBias=1),
    )
    expected = (product(a, b) + bias) * scales
    assert np.array_equal(c, expected.astype(np.float16))


def test_set_tail_computes_less_and_leaves_the_rest(multiply) -> None:
    a, b, c = operands(64, 64, 64)
    c[:] = -1
    t = tiling(64, 64, 64, (32, 32, 32))
    expected = np.full((64, 64), -1, np.float32)
    expected[:56, :56] = product(a[:, :56], b[:56])[:56, :56]
    assert np.array_equal(multiply(4, a, b, c, t, number=8), expected)


def test_a_batch_on_a_cube_core(multiply) -> None:
    count, m, n, k = 3, 24, 40, 48
    a = numbers((count, m, k), np.float16, 1)
    b = numbers((count, k, n), np.float16, 2)
    bias = numbers((count, n), np.float32, 3)
    c = np.zeros((count, m, n), np.float32)
    t = tiling(m, n, k, (16, 32, 32), isBias=1, BatchNum=count)
    multiply(5, a, b.transpose(0, 2, 1), c, t, bias=bias, number=count)
    assert np.array_equal(c, product(a, b) + bias[:, None])


def test_a_scalar_sums_the_columns_of_b(multiply) -> None:
    a, b, c = operands(1, 48, 80)
    t = tiling(1, 48, 80, (16, 32, 32))
    expected = 3 * b.astype(np.float32).sum(axis=0, keepdims=True)
    assert np.array_equal(multiply(6, a, b, c, t, number=3), expected)


def test_blocks_are_added_to_what_is_there(multiply) -> None:
    a, b, c = operands(40, 48, 32)
    c[:] = 7
    t = tiling(40, 48, 32, (32, 32, 32))
    # The second pass writes what the first has added to.
    assert np.array_equal(multiply(7, a, b, c, t), product(a, b))


def test_hf32_rounds_the_inputs(multiply) -> None:
    """HF32 keeps 11 bits behind the point. Sources: ATC parameters, allow_hf32; Matmul, SetHF32."""
    m, n, k = 32, 32, 48
    a = np.random.default_rng(1).uniform(1, 2, (m, k)).astype(np.float32)
    a[::2] = (np.floor(a[::2] * 2048) + 0.5) / 2048  # in the middle of two
    b = np.eye(k, n, dtype=np.float32)
    t = tiling(m, n, k, (32, 32, 16))
    exact, to_even, from_zero = (
        multiply(8, a, b, np.zeros((m, n), np.float32), t, number=number) for number in (0, 1, 2)
    )
    assert np.array_equal(exact, a[:, :n])
    assert np.array_equal(to_even, np.rint(a[:, :n] * 2048) / 2048)
    assert np.array_equal(from_zero, np.floor(a[:, :n] * 2048 + 0.5) / 2048)


def test_a_sparse_matrix_on_the_right(multiply) -> None:
    m, n, k = 40, 48, 192
    generator = np.random.default_rng(1)
    a = generator.integers(-8, 9, (m, k)).astype(np.int8)
    # In every four of B two are kept: the first among elements 0..2, the second behind it.
    first = generator.integers(0, 3, (n, k // 4))
    second = first + 1 + (generator.integers(0, 3, (n, k // 4)) % (3 - first))
    weights = generator.integers(-8, 9, (n, k // 4, 2)).astype(np.int8)
    whole = np.zeros((n, k // 4, 4), np.int8)
    np.put_along_axis(whole, first[..., None], weights[..., :1], axis=2)
    np.put_along_axis(whole, second[..., None], weights[..., 1:], axis=2)
    pairs = np.stack([first, second - 1], axis=-1).reshape(n, k // 8, 2, 2)
    indices = pairs.reshape(n, k // 8, 4)
    packed = (indices << np.array([0, 2, 4, 6])).sum(axis=2).astype(np.uint8)
    # As the fractals of B: columns of 32 kept elements, whose indices are 8 bytes a row.
    columns = np.ascontiguousarray(packed.reshape(n, k // 64, 8).transpose(1, 0, 2))
    c = np.zeros((m, n), np.int32)
    t = tiling(m, n, k, (32, 32, 64), stepKa=2, stepKb=2, depthA1=4, depthB1=4)
    multiply(9, a, weights.reshape(n, k // 2), c, t, bias=columns)
    assert np.array_equal(c, a.astype(np.int32) @ whole.reshape(n, k).astype(np.int32).T)


def test_an_object_without_registration(multiply) -> None:
    a, b, c = operands(48, 32, 64)
    t = tiling(48, 32, 64, (32, 32, 32))
    bias = numbers((32,), np.float32, 3)
    assert np.array_equal(multiply(10, a, b, c, t, bias=bias), product(a, b))
