"""Schedules of a Matmul object: each computes the same product, and none leaves a race behind."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from opkit.sanitizer import Check

from .test_matmul import numbers, tiling

KERNEL = """
#define ASCENDC_CUBE_ONLY
#include "lib/matmul_intf.h"
template <typename T>
using Gm = MatmulType<TPosition::GM, CubeFormat::ND, T>;
template <typename T>
inline GlobalTensor<T> tensor(const void* address) {
  GlobalTensor<T> gm;
  gm.SetGlobalBuffer(reinterpret_cast<__gm__ T*>(const_cast<void*>(address)));
  return gm;
}
constexpr MatmulConfig kUnits = GetMDLConfig(false, false, 0, false, false, false, true);
constexpr MatmulConfig kPreloadA = GetMDLConfig(false, false, 1), kPreloadB = GetMDLConfig(false, false, 2);
constexpr MatmulConfig kReordered =
    GetMDLConfig(false, false, 0, false, false, false, false, true, true, false, false, true);
constexpr MatmulConfig kReorderedUnits =
    GetMDLConfig(false, false, 2, false, false, false, true, true, true, false, false, true);

// Each core computes all of C into a matrix of its own, at once or block by block.
template <const auto& config>
inline void multiply(uint8_t* a, uint8_t* b, uint8_t* c, TCubeTiling& t, bool by_blocks) {
  TPipe pipe;
  Matmul<Gm<half>, Gm<half>, Gm<float>, Gm<float>, config> mm;
  REGIST_MATMUL_OBJ(&pipe, nullptr, mm, &t);
  mm.SetTensorA(tensor<half>(a));
  mm.SetTensorB(tensor<half>(b));
  const auto out = tensor<float>(c + GetBlockIdx() * t.M * t.N * sizeof(float));
  if (by_blocks) {
    while (mm.Iterate()) mm.GetTensorC(out);
  } else {
    mm.IterateAll(out);
  }
  mm.End();
}

extern "C" __global__ __aicore__ void kernel(GM_ADDR a, GM_ADDR b, GM_ADDR c, GM_ADDR tiling, int form, int by_blocks) {
  TCubeTiling t = *reinterpret_cast<TCubeTiling*>(tiling);
  switch (form) {
    case 0: return multiply<CFG_NORM>(a, b, c, t, by_blocks);
    case 1: return multiply<CFG_MDL>(a, b, c, t, by_blocks);
    case 2: return multiply<kUnits>(a, b, c, t, by_blocks);
    case 3: return multiply<kPreloadA>(a, b, c, t, by_blocks);
    case 4: return multiply<kPreloadB>(a, b, c, t, by_blocks);
    case 5: return multiply<kReordered>(a, b, c, t, by_blocks);
    case 6: return multiply<kReorderedUnits>(a, b, c, t, by_blocks);
  }
}
"""

FORMS = ("norm", "mdl", "units", "preload_a", "preload_b", "reordered", "reordered_units")
DEPTHS = {
    "single": {"depthA1": 1, "depthB1": 1},
    "deep": {"depthA1": 4, "depthB1": 4, "stepKa": 2, "stepKb": 2, "dbL0C": 2},
    "uneven": {"depthA1": 8, "depthB1": 2, "stepKa": 4, "stepKb": 2, "iterateOrder": 1},
}


@pytest.fixture(scope="module")
def kernel(compile_kernel: Callable[..., object]) -> Callable[..., object]:
    return compile_kernel(KERNEL, mode="Cube")


@pytest.mark.sampled(3)
@pytest.mark.parametrize("by_blocks", [False, True])
@pytest.mark.parametrize("depth", DEPTHS)
@pytest.mark.parametrize("form", range(len(FORMS)), ids=FORMS)
def test_a_schedule_changes_no_result_and_races_with_nothing(
    kernel, form: int, depth: str, by_blocks: bool
) -> None:
    m, n, k, cores = 40, 80, 150, 3
    a, b = numbers((m, k), np.float16, 1), numbers((k, n), np.float16, 2)
    c = np.zeros((cores, m, n), np.float32)
    t = tiling(m, n, k, (16, 32, 16), **DEPTHS[depth])
    choice = (np.int32(form).tobytes(), np.int32(by_blocks).tobytes())
    with Check(("racecheck",)) as checks:
        kernel(a, b, c, t, *choice, block_dim=cores)
    assert not checks.findings
    expected = a.astype(np.float32) @ b.astype(np.float32)
    assert all(np.array_equal(part, expected) for part in c)
