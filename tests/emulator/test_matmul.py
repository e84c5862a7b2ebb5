"""Matmul objects against NumPy: on a cube core alone, and on requests of vector cores."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from opkit.emulator import _emulator, include_dir
from opkit.errors import KernelFault
from opkit.sanitizer import Check

FIELDS = [
    line.split("(")[1].split(")")[0]
    for line in (Path(include_dir()) / "opkit/host/cube_tiling_fields.inc").read_text().splitlines()
    if line.startswith("CUBE_TILING_FIELD(")
]

COMMON = """
#include "lib/matmul_intf.h"
struct Arguments {
  uint8_t *a, *b, *bias, *c, *workspace;
};
template <CubeFormat format, typename T, bool is_transposed = false>
using Gm = MatmulType<TPosition::GM, format, T, is_transposed>;
template <typename T>
inline GlobalTensor<T> tensor(GM_ADDR address) {
  GlobalTensor<T> gm;
  gm.SetGlobalBuffer(reinterpret_cast<__gm__ T*>(address));
  return gm;
}
constexpr auto ND = CubeFormat::ND;
constexpr auto NZ = CubeFormat::NZ;
"""

ON_CUBE = (
    "#define ASCENDC_CUBE_ONLY\n"
    + COMMON
    + """
template <bool by_tile, typename A, typename B, typename C, const auto& config = CFG_NORM>
inline void multiply(const Arguments& x, const TCubeTiling& t) {
  TPipe pipe;
  Matmul<A, B, C, MatmulType<TPosition::GM, ND, typename C::T>, config> mm;
  REGIST_MATMUL_OBJ(&pipe, GetSysWorkSpacePtr(), mm, &t);
  const GlobalTensor<typename A::T> a = tensor<typename A::T>(x.a);
  if constexpr (A::pos == TPosition::TSCM) {
    TSCM<TPosition::GM, 1> scm;
    const uint32_t count = (t.M + 15) / 16 * 16 * ((t.Ka + 15) / 16 * 16);
    pipe.InitBuffer(scm, 1, count * sizeof(typename A::T));
    LocalTensor<typename A::T> local = scm.template AllocTensor<typename A::T>();
    DataCopy(local, a, count);
    scm.EnQue(local);
    mm.SetTensorA(scm.template DeQue<typename A::T>(), A::isTrans);
  } else {
    mm.SetTensorA(a, A::isTrans);
  }
  mm.SetTensorB(tensor<typename B::T>(x.b), B::isTrans);
  if constexpr (!std::is_same<typename C::T, half>::value) {
    if (t.isBias) mm.SetBias(tensor<typename C::T>(x.bias));
  }
  const GlobalTensor<typename C::T> c = tensor<typename C::T>(x.c);
  if (by_tile) {
    while (mm.Iterate()) mm.GetTensorC(c);
  } else {
    mm.IterateAll(c);
  }
  mm.End();
}
extern "C" __global__ __aicore__ void kernel(GM_ADDR a, GM_ADDR b, GM_ADDR bias, GM_ADDR c, GM_ADDR workspace,
                                             GM_ADDR tiling, int kind) {
  const TCubeTiling t = *reinterpret_cast<TCubeTiling*>(tiling);
  const Arguments x{a, b, bias, c, workspace};
  switch (kind) {
    case 0: return multiply<true, Gm<ND, half>, Gm<ND, half>, Gm<ND, float>>(x, t);
    case 1: return multiply<false, Gm<ND, half, true>, Gm<ND, half, true>, Gm<ND, half>, CFG_MDL>(x, t);
    case 2: return multiply<false, Gm<ND, float, true>, Gm<ND, float>, Gm<ND, float>>(x, t);
    case 3: return multiply<true, Gm<ND, int8_t, true>, Gm<ND, int8_t>, Gm<ND, int32_t>, CFG_MDL>(x, t);
    case 4: return multiply<false, Gm<NZ, half>, Gm<NZ, half>, Gm<NZ, float>>(x, t);
    case 6: return multiply<false, MatmulType<TPosition::TSCM, NZ, half>, Gm<ND, half>, Gm<ND, float>>(x, t);
    case 7: return multiply<true, MatmulType<TPosition::TSCM, NZ, half, true>, Gm<ND, half>, Gm<ND, float>>(x, t);
    case 5: return multiply<true, Gm<ND, bfloat16_t>, Gm<ND, bfloat16_t, true>, Gm<ND, float>, CFG_MDL>(x, t);
  }
}
"""
)

ON_VECTOR = (
    COMMON
    + """
template <typename A, typename B, typename C>
inline void multiply(const Arguments& x, const TCubeTiling& t, int kind) {
  TPipe pipe;
  SetSysWorkspace(x.workspace);
  Matmul<A, B, C, MatmulType<TPosition::GM, ND, float>> mm;
  REGIST_MATMUL_OBJ(&pipe, GetSysWorkSpacePtr(), mm, &t);
  const int64_t m = t.singleCoreM, first = GetBlockIdx() * m;
  const bool has_own_b = kind == 5 || kind == 6, sums_two = kind == 6;
  const int64_t a_size = m * t.Ka * (sums_two ? 2 : 1), b_size = int64_t{t.Kb} * t.N * (sums_two ? 2 : 1);
  const GlobalTensor<half> a = tensor<half>(x.a)[GetBlockIdx() * a_size];
  const GlobalTensor<half> b = tensor<half>(x.b)[has_own_b ? GetBlockIdx() * b_size : 0];
  const GlobalTensor<float> c = tensor<float>(x.c)[first * t.N];
  TBuf<TPosition::VECCALC> memory;
  pipe.InitBuffer(memory, 64 * 1024);
  LocalTensor<float> sum = memory.Get<float>(8 * 1024);
  LocalTensor<half> a_local = memory.GetWithOffset<half>(4 * 1024, 32 * 1024);
  LocalTensor<half> b_local = memory.GetWithOffset<half>(12 * 1024, 40 * 1024);
  TSCM<TPosition::GM, 1> scm;
  if constexpr (A::pos == TPosition::TSCM) {
    pipe.InitBuffer(scm, 1, a_size * sizeof(half));
    LocalTensor<half> local = scm.AllocTensor<half>();
    DataCopy(local, a, a_size);
    scm.EnQue(local);
    mm.SetTensorA(scm.DeQue<half>());
    mm.SetTensorB(b);
  } else if constexpr (A::pos == TPosition::VECIN) {
    DataCopy(a_local, a, a_size);
    DataCopy(b_local, b, b_size);
    PipeBarrier<PIPE_ALL>();
    mm.SetTensorA(a_local);
    mm.SetTensorB(b_local);
  } else {
    mm.SetTensorA(a);
    mm.SetTensorB(b);
  }
  if (t.isBias) mm.SetBias(tensor<float>(x.bias));
  if (kind == 0) {
    while (mm.Iterate()) mm.GetTensorC(c);
  } else if (kind == 1) {
    mm.template IterateAll<false>(c, 0, false, true);
    mm.WaitIterateAll();
  } else if (kind == 2) {
    mm.SetWorkspace(tensor<float>(x.workspace)[(8 << 20) + first * t.N]);
    mm.template Iterate<false>();
    const int blocks = (m + t.baseM - 1) / t.baseM * ((t.N + t.baseN - 1) / t.baseN);
    for (int i = 0; i < blocks; ++i) {
      mm.template GetTensorC<false>(sum);
      PipeBarrier<PIPE_ALL>();
    }
    DataCopy(c, sum, m * t.N);
  } else if (kind == 7) {
    mm.SetWorkspace(tensor<float>(x.workspace)[(8 << 20) + first * t.N]);
    mm.template Iterate<false>();
    const int blocks = (m + t.baseM - 1) / t.baseM * ((t.N + t.baseN - 1) / t.baseN);
    for (int i = 0; i < blocks; ++i) mm.template GetTensorC<false>(c, 1);
  } else if (kind == 8 || kind == 9) {
    mm.SetWorkspace(tensor<float>(x.workspace)[(8 << 20) + first * t.N]);
    if (kind == 8) mm.template Iterate<false>();
    if (kind == 9) mm.Iterate();
    for (int i = 0; i < m / t.baseM; ++i) {
      const GlobalTensor<float> rows = i % 2 == 0 ? mm.GetTensorC() : mm.template GetTensorC<false>();
      DataCopy(sum, rows, t.baseM * t.N);
      PipeBarrier<PIPE_ALL>();
      DataCopy(c[i * t.baseM * t.N], sum, t.baseM * t.N);
      PipeBarrier<PIPE_ALL>();
    }
  } else if (kind == 3) {
    mm.IterateAll(sum);
    PipeBarrier<PIPE_ALL>();
    DataCopy(c, sum, m * t.N);
  } else if (kind == 4) {
    mm.IterateAll(c);
    mm.IterateAll(c, 1);
  } else if (kind == 5) {
    mm.IterateAll(c);
  } else {
    mm.Iterate();
    if constexpr (A::pos == TPosition::VECIN) {
      mm.SetTensorA(a_local[m * t.Ka]);
      mm.SetTensorB(b_local[t.Kb * t.N]);
    } else {
      mm.SetTensorA(a[m * t.Ka]);
      mm.SetTensorB(b[t.Kb * t.N]);
    }
    mm.Iterate(true);
    mm.GetTensorC(c);
  }
  mm.End();
}
extern "C" __global__ __aicore__ void kernel(GM_ADDR a, GM_ADDR b, GM_ADDR bias, GM_ADDR c, GM_ADDR workspace,
                                             GM_ADDR tiling, int kind) {
  const TCubeTiling t = *reinterpret_cast<TCubeTiling*>(tiling);
  const Arguments x{a, b, bias, c, workspace};
  using Ub = MatmulType<TPosition::VECIN, ND, half>;
  if (kind == 25) return multiply<MatmulType<TPosition::TSCM, NZ, half>, Gm<ND, half>, Gm<ND, float>>(x, t, 5);
  if (kind < 10) return multiply<Gm<ND, half>, Gm<ND, half>, MatmulType<TPosition::VECIN, ND, float>>(x, t, kind);
  multiply<Ub, Ub, Gm<ND, float>>(x, t, kind - 10);
}
"""
)


def tiling(m: int, n: int, k: int, base: tuple[int, int, int], **fields: int) -> np.ndarray:
    """Return the bytes of a TCubeTiling for one core."""
    values = dict.fromkeys(FIELDS, 0)
    values.update(usedCoreNum=1, M=m, N=n, Ka=k, Kb=k, singleCoreM=m, singleCoreN=n, singleCoreK=k)
    values.update(baseM=base[0], baseN=base[1], baseK=base[2], depthA1=2, depthB1=2)
    values.update(stepM=1, stepN=1, stepKa=1, stepKb=1, dbL0A=2, dbL0B=2, dbL0C=1)
    assert set(fields) <= set(values)
    values.update(fields)
    return np.array(list(values.values()), np.int32)


def numbers(shape: tuple[int, ...], dtype: type, seed: int) -> np.ndarray:
    """Return small integers, whose products are exact in every type."""
    return np.random.default_rng(seed).integers(-4, 5, shape).astype(dtype)


def bfloat16_bits(values: np.ndarray) -> np.ndarray:
    return (values.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)


def to_nz(matrix: np.ndarray) -> np.ndarray:
    """Return a matrix as columns of 16x16 fractals."""
    rows, columns = (-(-size // 16) * 16 for size in matrix.shape)
    whole = np.zeros((rows, columns), matrix.dtype)
    whole[: matrix.shape[0], : matrix.shape[1]] = matrix
    return np.ascontiguousarray(whole.reshape(rows, columns // 16, 16).transpose(1, 0, 2))


def from_nz(fractals: np.ndarray, m: int, n: int) -> np.ndarray:
    return fractals.transpose(1, 0, 2).reshape(fractals.shape[1], -1)[:m, :n]


NO_BIAS = np.zeros(1, np.float32)
NO_WORKSPACE = np.zeros(1, np.uint8)


@pytest.fixture(scope="module")
def on_cube(compile_kernel: Callable[..., object]) -> Callable[..., object]:
    return compile_kernel(ON_CUBE, mode="Cube")


@pytest.fixture(scope="module")
def on_vector(compile_kernel: Callable[..., object]) -> Callable[..., object]:
    return compile_kernel(ON_VECTOR, mode="Mix12")


# Whole base blocks, rests in each direction, one block, and one row.
SHAPES = [
    ((64, 64, 128), (32, 32, 64)),
    ((100, 72, 200), (32, 48, 64)),
    ((16, 16, 32), (64, 64, 64)),
    ((1, 40, 96), (16, 32, 32)),
]


def arranged(values: np.ndarray, transposed: bool) -> np.ndarray:
    return np.ascontiguousarray(values.T) if transposed else values


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("shape", "base"), SHAPES)
@pytest.mark.parametrize(
    ("kind", "element", "result", "transposed"),
    [
        (0, np.float16, np.float32, (False, False)),
        (1, np.float16, np.float16, (True, True)),
        (2, np.float32, np.float32, (True, False)),
        (3, np.int8, np.int32, (True, False)),
        (5, np.float32, np.float32, (False, True)),
    ],
)
def test_a_cube_core_multiplies_each_type(on_cube, kind, element, result, transposed, shape, base):
    m, n, k = shape
    a, b = numbers((m, k), element, 1), numbers((k, n), element, 2)
    bias = numbers((n,), result, 3)
    has_bias = result is not np.float16
    c = np.zeros((m, n), result)
    given = [arranged(a, transposed[0]), arranged(b, transposed[1])]
    if kind == 5:
        given = [bfloat16_bits(values) for values in given]
    t = tiling(*shape, base, isBias=int(has_bias), stepKa=2, stepKb=2, depthA1=4, depthB1=4)
    on_cube(*given, bias, c, NO_WORKSPACE, t, np.int32(kind).tobytes())
    expected = a.astype(np.float64) @ b.astype(np.float64) + (bias if has_bias else 0)
    assert np.array_equal(c.astype(np.float64), expected)


def test_fractals_in_and_out(on_cube) -> None:
    m, n, k = 40, 56, 80
    a, b = numbers((m, k), np.float16, 1), numbers((k, n), np.float16, 2)
    c = np.zeros((4, 48, 16), np.float32)
    on_cube(
        *(to_nz(a), to_nz(b), NO_BIAS, c, NO_WORKSPACE),
        *(tiling(m, n, k, (16, 32, 32)), np.int32(4).tobytes()),
    )
    assert np.array_equal(from_nz(c, m, n), a.astype(np.float32) @ b.astype(np.float32))


@pytest.mark.parametrize(("kind", "is_transposed"), [(6, False), (7, True)])
def test_a_matrix_that_the_kernel_puts_into_l1(on_cube, kind: int, is_transposed: bool) -> None:
    m, n, k = 40, 56, 80
    a, b = numbers((m, k), np.float16, 1), numbers((k, n), np.float16, 2)
    c = np.zeros((m, n), np.float32)
    on_cube(
        *(to_nz(arranged(a, is_transposed)), b, NO_BIAS, c, NO_WORKSPACE),
        *(tiling(m, n, k, (32, 32, 32)), np.int32(kind).tobytes()),
    )
    assert np.array_equal(c, a.astype(np.float32) @ b.astype(np.float32))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("kind", [0, 1, 2, 3, 4, 7, 10, 11, 14])
@pytest.mark.parametrize("has_bias", [0, 1])
def test_vector_cores_have_it_done(on_vector, kind: int, has_bias: int) -> None:
    """By block, whole without waiting, by block into UB, whole into UB, added to C; with operands in GM and in UB."""
    m, n, k = 48, 64, 32
    a, b = numbers((2 * m, k), np.float16, 1), numbers((k, n), np.float16, 2)
    bias = numbers((n,), np.float32, 3)
    c = np.zeros((2 * m, n), np.float32)
    t = tiling(m, n, k, (32, 32, 16), isBias=has_bias)
    with Check(()) as checks:
        on_vector(a, b, bias, c, np.zeros(64 << 20, np.uint8), t, np.int32(kind).tobytes())
    product = a.astype(np.float32) @ b.astype(np.float32) + bias * has_bias
    assert np.array_equal(c, product * (2 if kind % 10 == 4 else 1))
    assert not checks.findings


def test_blocks_are_taken_where_they_lie_in_the_workspace(on_vector) -> None:
    # GetTensorC() behind Iterate<false> did not compile, only GetTensorC<false>().
    m, n, k = 64, 32, 32
    a, b = numbers((2 * m, k), np.float16, 1), numbers((k, n), np.float16, 2)
    c = np.zeros((2 * m, n), np.float32)
    given = (a, b, NO_BIAS, c, np.zeros(64 << 20, np.uint8), tiling(m, n, k, (16, n, 16)))
    on_vector(*given, np.int32(8).tobytes())
    assert np.array_equal(c, a.astype(np.float32) @ b.astype(np.float32))
    with pytest.raises(KernelFault, match="GetTensorC without a tensor takes Iterate<false>"):
        on_vector(*given, np.int32(9).tobytes())


@pytest.mark.parametrize("kind", [5, 6, 15, 16])
def test_each_vector_core_has_its_own_operands(on_vector, kind: int) -> None:
    """One product each, or a sum of two; both objects lie at the same address of their stacks."""
    m, n, k, products = 32, 48, 32, 2 if kind % 10 == 6 else 1
    a = numbers((4, products, m, k), np.float16, 1)
    b = numbers((4, products, k, n), np.float16, 2)
    c = np.zeros((4, m, n), np.float32)
    t = tiling(m, n, k, (32, 48, 16))
    on_vector(
        *(a, b, NO_BIAS, c, np.zeros(64 << 20, np.uint8), t, np.int32(kind).tobytes()),
        block_dim=2,
    )
    assert np.array_equal(c, (a.astype(np.float32) @ b.astype(np.float32)).sum(axis=1))


def test_a_vector_core_puts_a_matrix_into_l1(on_vector) -> None:
    m, n, k = 32, 48, 64
    a, b = numbers((4, m, k), np.float16, 1), numbers((4, k, n), np.float16, 2)
    c = np.zeros((4, m, n), np.float32)
    columns = np.stack([to_nz(matrix) for matrix in a])
    t = tiling(m, n, k, (16, 48, 32))
    on_vector(
        *(columns, b, NO_BIAS, c, np.zeros(64 << 20, np.uint8), t, np.int32(25).tobytes()),
        block_dim=2,
    )
    assert np.array_equal(c, a.astype(np.float32) @ b.astype(np.float32))


def test_a_tiling_without_sizes_is_told(on_cube) -> None:
    a = np.zeros((16, 16), np.float16)
    with pytest.raises(KernelFault, match="the tiling has no sizes"):
        on_cube(
            *(a, a, NO_BIAS, np.zeros((16, 16), np.float32), NO_WORKSPACE),
            *(tiling(0, 0, 0, (0, 0, 0)), np.int32(0).tobytes()),
        )


def test_a_cube_kernel_has_no_vector_cores_that_ask(compile_kernel) -> None:
    kernel = compile_kernel(ON_VECTOR, mode="Cube")
    a = np.zeros((16, 16), np.float16)
    with pytest.raises(KernelFault, match="this kernel has no vector cores"):
        kernel(
            *(a, a, NO_BIAS, np.zeros((16, 16), np.float32), np.zeros(64 << 20, np.uint8)),
            *(tiling(16, 16, 16, (16, 16, 16)), np.int32(1).tobytes()),
        )


def test_a_kernel_that_says_no_type_runs_on_what_its_objects_need(compile_kernel) -> None:
    kernel = compile_kernel(ON_VECTOR)
    a, b = numbers((32, 16), np.float16, 1), numbers((16, 16), np.float16, 2)
    c = np.zeros((32, 16), np.float32)
    t = tiling(16, 16, 16, (16, 16, 16))
    kernel(a, b, NO_BIAS, c, np.zeros(64 << 20, np.uint8), t, np.int32(1).tobytes())
    assert np.array_equal(c, a.astype(np.float32) @ b.astype(np.float32))


def test_any_number_of_threads_gives_the_same_bits(on_vector) -> None:
    m, n, k = 48, 64, 32
    a = np.random.default_rng(1).normal(size=(8 * m, k)).astype(np.float16)
    b = np.random.default_rng(2).normal(size=(k, n)).astype(np.float16)
    results = []
    for threads in (1, 3):
        _emulator.configure(**{**_emulator.configuration(), "threads": threads})
        c = np.zeros((8 * m, n), np.float32)
        t = tiling(m, n, k, (32, 32, 16))
        on_vector(
            *(a, b, NO_BIAS, c, np.zeros(64 << 20, np.uint8), t, np.int32(1).tobytes()),
            block_dim=4,
        )
        results.append(c)
    assert np.array_equal(results[0].view(np.uint32), results[1].view(np.uint32))
