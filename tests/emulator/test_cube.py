"""Mmad with what feeds it and carries its result out, against NumPy."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from opkit.emulator import _emulator
from opkit.errors import KernelFault

# One tile: ND in global memory to L1, L0A and L0B, Mmad, and back. B is k x n, or n x k when it is transposed.
TILE = """
template <typename In, typename Out, bool is_b_transposed, bool has_bias>
inline void multiply(GM_ADDR a, GM_ADDR b, GM_ADDR bias, GM_ADDR c, int m, int n, int k) {
  constexpr int width = 32 / sizeof(In);
  const auto up = [](int value, int unit) { return (value + unit - 1) / unit * unit; };
  GlobalTensor<In> aGm, bGm;
  GlobalTensor<Out> cGm, biasGm;
  aGm.SetGlobalBuffer((__gm__ In*)a, m * k);
  bGm.SetGlobalBuffer((__gm__ In*)b, n * k);
  biasGm.SetGlobalBuffer((__gm__ Out*)bias, n);
  cGm.SetGlobalBuffer((__gm__ Out*)c, m * n);
  const int mUp = up(m, 16), nUp = up(n, 32), kUp = up(k, 32);
  LocalTensor<In> a1(TPosition::A1, 0, mUp * kUp), a2(TPosition::A2, 0, mUp * kUp);
  LocalTensor<In> b1(TPosition::B1, mUp * kUp * sizeof(In), nUp * kUp), b2(TPosition::B2, 0, nUp * kUp);
  LocalTensor<Out> c1(TPosition::C1, 400 * 1024, nUp), c2(TPosition::C2, 0, nUp);
  LocalTensor<Out> co(TPosition::CO1, 0, mUp * nUp);
  // One row is read as a vector: its data blocks lie one behind the other.
  DataCopy(a1, aGm, Nd2NzParams(1, m, k, 0, k, m == 1 ? 1 : mUp, 1, 0));
  if (is_b_transposed) {
    DataCopy(b1, bGm, Nd2NzParams(1, n, k, 0, k, nUp, 1, 0));
  } else {
    DataCopy(b1, bGm, Nd2NzParams(1, k, n, 0, n, kUp, 1, 0));
  }
  if (has_bias) DataCopy(c1, biasGm, Nd2NzParams(1, 1, n, 0, n, 1, 1, 0));
  PipeBarrier<PIPE_ALL>();
  const int depth = up(k, width) / width;
  if (m == 1) LoadData(a2, a1, LoadData2DParams(0, up(k, 16 * width) / (16 * width), 1, 0, 0, false, 0));
  for (int i = 0; m > 1 && i < mUp / 16; ++i) {
    LoadData(a2[i * depth * 16 * width], a1[i * 16 * width],
             LoadData2DParams(0, depth, mUp / 16, 0, 0, false, 0));
  }
  const int blocks = up(n, 16) / 16;
  for (int i = 0; i < depth; ++i) {
    if (is_b_transposed) {
      LoadData(b2[i * blocks * 16 * width], b1[i * nUp * width], LoadData2DParams(0, blocks, 1, 0, 0, false, 0));
    } else {
      LoadData(b2[i * blocks * 16 * width], b1[i * 16 * width],
               LoadData2DParams(0, blocks, kUp / 16, 0, 0, true, 0));
    }
  }
  const DataCopyParams row(1, up(n * sizeof(Out), 64) / 64, 0, 0);
  if (has_bias && m > 1) DataCopy(c2, c1, row);
  if (has_bias && m == 1) DataCopy<Out, Out>(c2, c1, row);  // did not compile where both types are the same
  PipeBarrier<PIPE_ALL>();
  MmadParams params(m, n, k, 0, false, true);
  if (has_bias) {
    Mmad(co, a2, b2, c2, params);
  } else {
    Mmad(co, a2, b2, params);
  }
  PipeBarrier<PIPE_ALL>();
  Fixpipe(cGm, co, FixpipeParamsV220(n, m, mUp, n, false));
  PipeBarrier<PIPE_ALL>();
}
"""

TYPES = ("half", "bfloat16_t", "float", "int8_t")
SIZES = [(16, 16, 16), (30, 40, 70), (1, 32, 100), (47, 17, 33), (128, 128, 64)]


@pytest.fixture(scope="module")
def multiply(compile_kernel: Callable[..., object]) -> Callable[..., np.ndarray]:
    """Return C of A, B (n x k) and an optional bias, from one kernel with a branch for each type."""
    branches = "".join(
        f"if (kind == {2 * i + has_bias}) multiply<{name}, {'int32_t' if name == 'int8_t' else 'float'}, "
        f"true, {str(bool(has_bias)).lower()}>(a, b, bias, c, m, n, k);\n"
        for i, name in enumerate(TYPES)
        for has_bias in (0, 1)
    )
    half_by_rows = "if (kind == 8) multiply<half, float, false, false>(a, b, bias, c, m, n, k);\n"
    kernel = compile_kernel(
        TILE
        + 'extern "C" __global__ __aicore__ void kernel(GM_ADDR a, GM_ADDR b, GM_ADDR bias, GM_ADDR c, GM_ADDR sizes)'
        + " {\n__gm__ int32_t* s = (__gm__ int32_t*)sizes;\nconst int m = s[0], n = s[1], k = s[2], kind = s[3];\n"
        + "SetHF32Mode(s[4] == 0 ? HF32Mode::DISABLE : HF32Mode::ENABLE);\n"
        + "if (s[4] == 2) SetHF32TransMode(HF32TransMode::NEAREST_ZERO);\n"
        # Its form before CANN 9.
        + "if (s[4] != 2) SetHF32TransMode(false);\n"
        + branches
        + half_by_rows
        + "}",
        mode="Cube",
    )

    def run(
        name: str,
        a: np.ndarray,
        b: np.ndarray,
        bias: np.ndarray | None = None,
        by_rows: bool = False,
        hf32: int = 0,
    ) -> np.ndarray:
        m, k = a.shape
        n = b.shape[1] if by_rows else b.shape[0]
        kind = 8 if by_rows else 2 * TYPES.index(name) + (bias is not None)
        out = np.zeros((m, n), np.int32 if name == "int8_t" else np.float32)
        given = np.zeros(n, out.dtype) if bias is None else bias
        sizes = np.array([m, n, k, kind, hf32], np.int32)
        kernel(stored(name, a), stored(name, b), given, out, sizes)
        return out

    return run


def stored(name: str, values: np.ndarray) -> np.ndarray:
    """Return the elements as they lie in memory; bfloat16 as its bits."""
    if name != "bfloat16_t":
        return values
    return (values.view(np.uint32) >> 16).astype(np.uint16)


def random(shape: tuple[int, int], name: str) -> np.ndarray:
    generator = np.random.default_rng(shape[0] * 1000 + shape[1])
    if name == "int8_t":
        return generator.integers(-128, 128, shape, dtype=np.int8)
    values = generator.uniform(-2, 2, shape).astype(np.float32)
    if name == "bfloat16_t":
        return (values.view(np.uint32) & 0xFFFF0000).view(np.float32)
    return values.astype(np.float16 if name == "half" else np.float32)


def in_order(a: np.ndarray, b: np.ndarray, start: np.ndarray) -> np.ndarray:
    """Return A * B.T + start, k in rising order; each step is rounded from its exact value."""
    total = np.broadcast_to(start.astype(np.float32), (a.shape[0], b.shape[0])).copy()
    for k in range(a.shape[1]):
        step = a[:, k].astype(np.longdouble)[:, None] * b[:, k].astype(np.longdouble)[None, :]
        total = (step + total).astype(np.float32)
    return total


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("has_bias", [False, True])
def test_mmad_adds_up_k_in_rising_order(
    multiply: Callable[..., np.ndarray], name: str, size: tuple[int, int, int], has_bias: bool
) -> None:
    m, n, k = size
    a, b = random((m, k), name), random((n, k), name)
    bias = (np.arange(n) - 5).astype(np.int32 if name == "int8_t" else np.float32)
    start = bias if has_bias else np.zeros(n, bias.dtype)
    got = multiply(name, a, b, bias if has_bias else None)
    if name == "int8_t":
        expected = a.astype(np.int32) @ b.astype(np.int32).T + start
    else:
        expected = in_order(a, b, start)
    np.testing.assert_array_equal(got, expected)


def test_fractals_of_halves_are_transposed_on_the_way_to_l0b(
    multiply: Callable[..., np.ndarray],
) -> None:
    a, b = random((30, 70), "half"), random((70, 40), "half")
    got = multiply("half", a, b, by_rows=True)
    np.testing.assert_array_equal(got, in_order(a, b.T, np.zeros(40)))


@pytest.mark.parametrize("target", _emulator.lane_targets())
@pytest.mark.parametrize("name", TYPES)
def test_every_simd_target_gives_the_same_bits(
    multiply: Callable[..., np.ndarray], target: str, name: str
) -> None:
    a, b = random((47, 70), name), random((33, 70), name)
    expected = multiply(name, a, b)
    _emulator.set_lane_target(target)
    try:
        np.testing.assert_array_equal(multiply(name, a, b), expected)
    finally:
        _emulator.set_lane_target("auto")


def test_an_integer_product_saturates_once(multiply: Callable[..., np.ndarray]) -> None:
    a, b = np.full((3, 64), -128, np.int8), np.full((20, 64), -128, np.int8)
    bias = np.array([2**31 - 1, -(2**31), 0, 5] * 5, np.int32)
    got = multiply("int8_t", a, b, bias)
    exact = bias.astype(np.int64) + 64 * 128 * 128
    np.testing.assert_array_equal(got, np.minimum(exact, 2**31 - 1) + np.zeros((3, 1), np.int64))


def test_sums_that_may_saturate_are_the_same_on_every_target(
    multiply: Callable[..., np.ndarray],
) -> None:
    # Next to the limits each product counts, and sums pass them on the way and come back.
    generator = np.random.default_rng(5)
    a, b = (generator.integers(-128, 128, (16, 64), dtype=np.int8) for _ in range(2))
    near = np.array([2**31 - 1, -(2**31), 2**31 - 300000, -(2**31) + 300000], np.int32)
    bias = np.resize(near, 16).astype(np.int32)
    exact = np.clip(a.astype(np.int64) @ b.astype(np.int64).T + bias, -(2**31), 2**31 - 1)
    for target in _emulator.lane_targets():
        _emulator.set_lane_target(target)
        try:
            np.testing.assert_array_equal(multiply("int8_t", a, b, bias), exact)
        finally:
            _emulator.set_lane_target("auto")


def extremes(kind: str, shape: tuple[int, int]) -> np.ndarray:
    """Return values that fit in bfloat16, of one kind that an instruction may treat in its own way."""
    generator = np.random.default_rng(shape[0])
    values = generator.uniform(-2, 2, shape)
    if kind == "signed zeros":
        values *= generator.integers(0, 2, shape)
        values[::3] = 0  # these rows of C stay what they start with
    if kind == "wide":
        values *= np.exp2(generator.integers(-60, 60, shape))
    if kind == "tiny products":
        values *= np.exp2(generator.integers(-66, -58, shape))
    if kind == "subnormal":
        values *= np.exp2(np.where(generator.integers(0, 2, shape), -130.0, 100.0))
    if kind == "overflow":
        values *= np.exp2(generator.integers(50, 70, shape))
    if kind == "infinite":
        values[generator.integers(0, 40, shape) == 0] = np.inf
    bits = values.astype(np.float32).view(np.uint32) & 0xFFFF0000
    return bits.view(np.float32)


@pytest.mark.parametrize("scale", [1.0, 0.0, -0.0, 1e-33, 1e-39])
@pytest.mark.parametrize(
    "kind",
    ["signed zeros", "wide", "tiny products", "subnormal", "overflow", "infinite"],
)
def test_bfloat16_keeps_every_bit_on_every_target(
    multiply: Callable[..., np.ndarray], kind: str, scale: float
) -> None:
    # Dot products of the host take subnormal numbers for zero; they must not show.
    a, b = extremes(kind, (19, 34)), extremes(kind, (37, 34))
    bias = (np.arange(37) - 9).astype(np.float32) * np.float32(scale)
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        expected = in_order(a, b, bias)
    for target in _emulator.lane_targets():
        _emulator.set_lane_target(target)
        try:
            got = multiply("bfloat16_t", a, b, bias)
        finally:
            _emulator.set_lane_target("auto")
        is_number = ~np.isnan(expected)
        np.testing.assert_array_equal(np.isnan(got), ~is_number)
        np.testing.assert_array_equal(
            got.view(np.uint32)[is_number], expected.view(np.uint32)[is_number]
        )


def to_hf32(values: np.ndarray, halfway: str) -> np.ndarray:
    """Return the nearest numbers of 1 + 11 bits; those in the middle go to "even" or "zero"."""
    significands, exponents = np.frexp(values.astype(np.float64))
    scaled = significands * 2**12
    if halfway == "even":
        nearest = np.rint(scaled)
    else:
        nearest = np.sign(scaled) * np.ceil(np.abs(scaled) - 0.5)
    return np.ldexp(nearest, exponents - 12).astype(np.float32)


@pytest.mark.parametrize(("mode", "halfway"), [(1, "even"), (2, "zero")])
def test_hf32_rounds_what_l0a_and_l0b_hold(
    multiply: Callable[..., np.ndarray], mode: int, halfway: str
) -> None:
    a, b = random((30, 70), "float"), random((40, 70), "float")
    # Every other value lies in the middle of two: 12 bits behind the first.
    a[:, ::2] = (np.floor(a[:, ::2] * 2**11) + 0.5) / 2**11
    b[:, ::2] = 1
    got = multiply("float", a, b, hf32=mode)
    start = np.zeros(40, np.float32)
    rounded = in_order(to_hf32(a, halfway), to_hf32(b, halfway), start)
    np.testing.assert_array_equal(got, rounded)
    assert not np.array_equal(got, in_order(a, b, start))


def test_hf32_leaves_other_types_and_what_is_no_number_alone(
    multiply: Callable[..., np.ndarray],
) -> None:
    a, b = random((16, 32), "half"), random((16, 32), "half")
    np.testing.assert_array_equal(multiply("half", a, b, hf32=1), multiply("half", a, b))
    specials = np.array([np.inf, -np.inf, np.nan, -0.0], np.float32)
    unit = np.zeros((16, 8), np.float32)
    unit[0, 0] = 1
    column = np.zeros((4, 8), np.float32)
    column[:, 0] = specials
    got = multiply("float", unit, column, hf32=1)[0]
    np.testing.assert_array_equal(got[:4], specials)


def test_a_bias_becomes_no_type_that_the_document_is_silent_of(
    compile_kernel: Callable[..., Callable[..., object]],
) -> None:
    # Quantised convolutions have the call and do not reach it: it did not compile.
    kernel = compile_kernel(
        """
extern "C" __global__ __aicore__ void kernel(GM_ADDR x) {
  if (*(__gm__ int32_t*)x == 0) return;
  LocalTensor<float> c1(TPosition::C1, 0, 16);
  LocalTensor<int32_t> c2(TPosition::C2, 0, 16);
  DataCopy<int32_t, float>(c2, c1, DataCopyParams(1, 1, 0, 0));
}
""",
        mode="Cube",
    )
    kernel(np.zeros(1, np.int32))
    with pytest.raises(KernelFault, match="converts half to float only"):
        kernel(np.ones(1, np.int32))
