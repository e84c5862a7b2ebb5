"""Every configuration preset, type, format and transposition of a Matmul object against NumPy, two at a time.

A greedy choice of cases contains the pairs of values of the table, so that what two settings do to each other shows.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest

from opkit.sanitizer import Check

from .test_matmul import tiling

PRESETS = {
    "norm": "CFG_NORM",
    "mdl": "CFG_MDL",
    "special mdl": "SPECIAL",
    "ibshare": "CFG_IBSHARE_NORM",
    "basic": "BASIC",
    "unit flag": "UNIT_FLAG",
    "preload": "PRELOAD",
    "reorder": "REORDER",
    "long rows": "LONG_ROWS",
    "shared L0": "SHARED",
}
# A and B, C, bias. Source: Ascend C API, Matmul, table of input and output types, the rows of A2.
TYPES = [
    ("half", "float", "float"),
    ("half", "half", "half"),
    ("half", "bfloat16_t", "half"),
    ("half", "int8_t", "float"),
    ("bfloat16_t", "float", "half"),
    ("bfloat16_t", "bfloat16_t", "float"),
    ("bfloat16_t", "half", "half"),
    ("bfloat16_t", "int8_t", "float"),
    ("float", "float", "float"),
    ("float", "half", "half"),
    ("float", "bfloat16_t", "float"),
    ("int8_t", "int32_t", "int32_t"),
    ("int8_t", "half", "int32_t"),
    ("int8_t", "int8_t", "int32_t"),
    ("int4b_t", "int32_t", "int32_t"),
    ("int4b_t", "half", "int32_t"),
]
BITS = {"float": 32, "int32_t": 32, "half": 16, "bfloat16_t": 16, "int8_t": 8, "int4b_t": 4}
NUMPY = {
    "float": np.float32,
    "int32_t": np.int32,
    "half": np.float16,
    "bfloat16_t": np.uint16,
    "int8_t": np.int8,
    "int4b_t": np.uint8,
}
# What fills whole blocks of no size; fractals ask for whole ones of every type in memory.
SHAPES = {False: (50, 70, 90), True: (64, 128, 192)}
BASE = (32, 64, 64)

KERNEL = """
#define ASCENDC_CUBE_ONLY
#include "lib/matmul_intf.h"
constexpr auto ND = CubeFormat::ND;
constexpr auto NZ = CubeFormat::NZ;
constexpr auto ND_ALIGN = CubeFormat::ND_ALIGN;
constexpr MatmulConfig SPECIAL = GetSpecialMDLConfig();
constexpr MatmulConfig BASIC = GetBasicConfig(32, 64, 64);
constexpr MatmulConfig UNIT_FLAG = GetMDLConfig(false, false, 0, false, false, false, true);
constexpr MatmulConfig PRELOAD = GetMDLConfig(false, false, 1);
constexpr MatmulConfig REORDER =
    GetMDLConfig(false, false, 0, false, false, false, false, true, true, false, false, true);
constexpr MatmulConfig LONG_ROWS = GetMMConfig<MatmulConfigMode::CONFIG_NORM>(MatmulFuncParams{true});
constexpr MatmulFuncParams SHARING{false, false, false, false, 0, IterateOrder::UNDEF, ScheduleType::INNER_PRODUCT,
                                   true, false, false, true};
constexpr MatmulConfig SHARED = GetMMConfig<MatmulConfigMode::CONFIG_NORM>(SHARING);

template <CubeFormat format, typename T, bool is_transposed = false>
using Gm = MatmulType<TPosition::GM, format, T, is_transposed>;
template <typename T>
inline GlobalTensor<T> tensor(GM_ADDR address) {
  GlobalTensor<T> gm;
  gm.SetGlobalBuffer(reinterpret_cast<__gm__ T*>(address));
  return gm;
}
template <typename A, typename B, typename C, typename Bias, const auto& config>
inline void multiply(GM_ADDR a, GM_ADDR b, GM_ADDR bias, GM_ADDR c, GM_ADDR scales, const TCubeTiling& t, int quant) {
  TPipe pipe;
  Matmul<A, B, C, Gm<ND, Bias>, config> mm;
  REGIST_MATMUL_OBJ(&pipe, GetSysWorkSpacePtr(), mm, &t);
  mm.SetTensorA(tensor<typename A::T>(a), A::isTrans);
  mm.SetTensorB(tensor<typename B::T>(b), B::isTrans);
  if (t.isBias) mm.SetBias(tensor<Bias>(bias));
  if (quant == 1) mm.SetQuantScalar(*reinterpret_cast<const uint64_t*>(scales));
  if (quant == 2) mm.SetQuantVector(tensor<uint64_t>(scales));
  mm.IterateAll(tensor<typename C::T>(c));
  mm.End();
}
extern "C" __global__ __aicore__ void kernel(GM_ADDR a, GM_ADDR b, GM_ADDR bias, GM_ADDR c, GM_ADDR scales,
                                             GM_ADDR tiling, int index, int quant) {
  const TCubeTiling t = *reinterpret_cast<TCubeTiling*>(tiling);
  switch (index) {
%s
  }
}
"""


@dataclass(frozen=True)
class Case:
    """One row of the table."""

    preset: str
    types: tuple[str, str, str]
    a: str
    b: str
    c: str
    is_a_transposed: bool
    is_b_transposed: bool
    has_bias: bool

    def is_possible(self) -> bool:
        """Source: Ascend C API, MatmulConfig (BasicBlock), Matmul template parameters."""
        element = self.types[0]
        if self.preset == "basic" and (BITS[element] < 16 or not self.is_whole):
            return False
        # Rows of A are turned in squares that int4b_t does not have.
        return not (element == "int4b_t" and self.is_a_transposed)

    @property
    def is_whole(self) -> bool:
        """Whether the sizes are whole blocks: fractals in memory, or a preset that knows no tails."""
        return "NZ" in (self.a, self.b, self.c) or self.preset == "basic"

    @property
    def statement(self) -> str:
        element, result, bias = self.types
        a = f"Gm<{self.a}, {element}, {str(self.is_a_transposed).lower()}>"
        b = f"Gm<{self.b}, {element}, {str(self.is_b_transposed).lower()}>"
        types = f"{a}, {b}, Gm<{self.c}, {result}>, {bias}, {PRESETS[self.preset]}"
        return f"return multiply<{types}>(a, b, bias, c, scales, t, quant);"


def pairs_of(case: Case) -> set[tuple[tuple[str, object], ...]]:
    return set(itertools.combinations(sorted(vars(case).items()), 2))


def pairwise_cases() -> list[Case]:
    """Return cases that hold each pair of values which 600 random ones hold."""
    values = (PRESETS, TYPES, ("ND", "NZ"), ("ND", "NZ"), ("ND", "NZ", "ND_ALIGN"))
    rows = list(itertools.product(*values, *[(False, True)] * 3))
    possible = [
        case for row in random.Random(1).sample(rows, 600) if (case := Case(*row)).is_possible()
    ]
    # Not the pairs of a preset and a type, which alone would take 150 cases: presets go round.
    pairs = {
        case: {pair for pair in pairs_of(case) if [name for name, _ in pair] != ["preset", "types"]}
        for case in possible
    }
    wanted = set().union(*pairs.values())
    chosen = []
    while wanted:
        chosen.append(max(possible, key=lambda case: len(pairs[case] & wanted)))
        wanted -= pairs[chosen[-1]]
    return chosen


CASES = pairwise_cases()


def encode(values: np.ndarray, kind: str) -> np.ndarray:
    """Return numbers as the kernel's type, one an element (int4b_t: one nibble an element)."""
    if kind == "bfloat16_t":
        bits = values.astype(np.float32).view(np.uint32)
        return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)
    if kind == "int4b_t":
        return values.astype(np.int8).view(np.uint8) & 15
    return values.astype(NUMPY[kind])


def laid_out(values: np.ndarray, kind: str, layout: str, width: int = 0) -> np.ndarray:
    """Return a matrix as it lies in memory; fractals of `width` columns, a data block's by default."""
    width = width or 256 // BITS[kind]
    rows, columns = values.shape
    if layout == "ND_ALIGN":
        padded = np.zeros((rows, -(-columns // width) * width), values.dtype)
        padded[:, :columns] = values
        values = padded
    if layout == "NZ":
        values = values.reshape(rows, columns // width, width).transpose(1, 0, 2)
    flat = np.ascontiguousarray(values).reshape(-1)
    return flat[::2] | flat[1::2] << 4 if kind == "int4b_t" else flat


@pytest.fixture(scope="module")
def multiply(compile_kernel: Callable[..., object]) -> Callable[..., np.ndarray]:
    """Return C's memory for one case, launched under every check."""
    text = "\n".join(f"    case {i}: {case.statement}" for i, case in enumerate(CASES))
    kernel = compile_kernel(KERNEL % text, mode="Cube")

    def run(case: Case, *arrays: np.ndarray, quant: int) -> None:
        numbers = (np.int32(CASES.index(case)).tobytes(), np.int32(quant).tobytes())
        with Check(()) as checks:
            kernel(*arrays, *numbers)
        assert not checks.findings

    return run


def quantised(sums: np.ndarray, case: Case, scales: np.ndarray) -> np.ndarray:
    """Return C's elements: rounded once, or scaled as Fixpipe does."""
    element, result, _ = case.types
    if result == "int8_t":
        scaled = sums.astype(np.float32) * scales
        return np.clip(np.rint(np.clip(scaled, -256, 255)), -128, 127).astype(np.int8)
    if result == "half" and BITS[element] < 16:
        return (sums.astype(np.float32) * scales).astype(np.float16)
    return encode(sums, result)


@pytest.mark.slow
@pytest.mark.parametrize("index", range(len(CASES)))
def test_each_pair_of_settings_gives_numpys_product(multiply, index: int) -> None:
    case = CASES[index]
    element, result, bias_kind = case.types
    m, n, k = SHAPES[case.is_whole]
    rng = np.random.default_rng(index)
    a, b = rng.integers(-4, 5, (m, k)), rng.integers(-4, 5, (k, n))
    bias = rng.integers(-9, 10, n)
    sums = a @ b + (bias if case.has_bias else 0)
    scales = np.linspace(0.25, 1.5, n, dtype=np.float32)
    scales = (scales.view(np.uint32) & 0xFFFFE000).view(np.float32)
    is_quantised = result == "int8_t" or (BITS[element] < 16 and result != "int32_t")
    for quant in (1, 2) if is_quantised else (0,):
        used = scales if quant == 2 else scales[:1]
        bits = scales.view(np.uint32).astype(np.uint64) | np.uint64((result == "int8_t") << 46)
        width = 32 if result == "int8_t" else 16 if case.c == "NZ" else 256 // BITS[result]
        expected = laid_out(quantised(sums, case, used), result, case.c, width)
        c = np.zeros_like(expected)
        t = tiling(
            *(m, n, k, BASE),
            **{"isBias": int(case.has_bias), "stepKa": 2, "stepKb": 2, "depthA1": 4, "depthB1": 4},
            **{"dbL0C": 2},
        )
        multiply(
            case,
            laid_out(encode(a.T if case.is_a_transposed else a, element), element, case.a),
            laid_out(encode(b.T if case.is_b_transposed else b, element), element, case.b),
            *(encode(bias, bias_kind), c, bits, t),
            quant=quant,
        )
        if case.c == "ND_ALIGN":
            # What lies behind the columns of a row is left open.
            rows = (m, -1)
            c, expected = (each.reshape(rows)[:, :n] for each in (c, expected))
        np.testing.assert_array_equal(c, expected, err_msg=str(case))
