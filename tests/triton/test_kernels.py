"""Triton kernels on the emulated chip against NumPy."""

from __future__ import annotations

import math

import numpy as np
import pytest

triton = pytest.importorskip("triton")
tl = pytest.importorskip("triton.language")

from opkit.triton import SlowKernel, launch  # noqa: E402

pytestmark = pytest.mark.filterwarnings(f"ignore::{SlowKernel.__module__}.SlowKernel")


def slow(value: str) -> object:
    """A parameter whose kernel of its own takes some seconds to compile."""
    return pytest.param(value, marks=pytest.mark.slow)


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(7)


@triton.jit
def scale_kernel(x, y, n, factor, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at, mask=at < n, other=0.0)
    tl.store(y + at, value * factor + 1, mask=at < n)


@pytest.mark.parametrize(("dtype", "n"), [("float32", 1000), ("float16", 257), ("int32", 33)])
def test_tails_are_neither_read_nor_written(rng: np.random.Generator, dtype: str, n: int) -> None:
    x = rng.integers(-50, 50, n).astype(dtype)
    y = np.full(n + 40, 99, dtype)
    factor = 3 if dtype == "int32" else 0.5
    launch(scale_kernel, (math.ceil(n / 128),), x, y, n, factor, BLOCK=128)
    np.testing.assert_array_equal(y[:n], (x * np.dtype(dtype).type(factor) + 1).astype(dtype))
    assert (y[n:] == 99).all()


@triton.jit
def integers_kernel(x, y, out, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    a = tl.load(x + at)
    b = tl.load(y + at)
    tl.store(out + at, a // b)
    tl.store(out + BLOCK + at, a % b)
    tl.store(out + 2 * BLOCK + at, a * b)
    tl.store(out + 3 * BLOCK + at, a + b)
    tl.store(out + 4 * BLOCK + at, (a & b) | (a ^ 5))
    tl.store(out + 5 * BLOCK + at, a >> 1)
    tl.store(out + 6 * BLOCK + at, tl.minimum(a, b))
    tl.store(out + 7 * BLOCK + at, tl.where(a < b, a, b - a))


@pytest.mark.parametrize("dtype", ["int8", slow("int16"), "int32", slow("int64"), slow("uint32")])
def test_whole_numbers_divide_toward_zero_and_wrap(rng: np.random.Generator, dtype: str) -> None:
    block = 45
    info = np.iinfo(dtype)
    x = rng.integers(info.min, info.max, block, dtype=dtype, endpoint=True)
    y = rng.integers(info.min, info.max, block, dtype=dtype, endpoint=True)
    x[0], y[y == 0] = info.max, 3
    out = np.zeros((8, block), dtype)
    launch(integers_kernel, (1,), x, y, out, BLOCK=block)
    quotient = [
        abs(int(a)) // abs(int(b)) * (1 if (a < 0) == (b < 0) else -1)
        for a, b in zip(x, y, strict=True)
    ]
    with np.errstate(over="ignore"):
        wide = np.array(quotient, dtype=object)
        rest = x.astype(object) - wide * y.astype(object)
        expected = [
            wide,
            rest,
            x * y,
            x + y,
            (x & y) | (x ^ np.dtype(dtype).type(5)),
            x >> np.dtype(dtype).type(1),
            np.minimum(x, y),
            np.where(x < y, x, y - x),
        ]
    for row, values in zip(out, expected, strict=True):
        whole = [int(value) % 2**info.bits for value in values]
        wrapped = np.array(whole, np.uint64).astype(f"u{dtype.lstrip('u')}")
        np.testing.assert_array_equal(row, wrapped.astype(dtype))


@triton.jit
def floats_kernel(x, y, out, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    a = tl.load(x + at).to(tl.float32)
    b = tl.load(y + at).to(tl.float32)
    tl.store(out + at, tl.exp(a) / (1 + tl.abs(b)))
    tl.store(out + BLOCK + at, tl.maximum(a, b) - tl.minimum(a, 0.25))
    tl.store(out + 2 * BLOCK + at, tl.sqrt(tl.abs(a)) + tl.log(tl.abs(b) + 1))
    tl.store(out + 3 * BLOCK + at, tl.sin(a) * tl.cos(b) + tl.erf(a))
    tl.store(out + 4 * BLOCK + at, tl.floor(a) + tl.ceil(b))
    tl.store(out + 5 * BLOCK + at, tl.sigmoid(a) + tl.fma(a, b, a))
    tl.store(out + 6 * BLOCK + at, tl.where((a > b) & (a != 0.5), a, -b))
    tl.store(out + 7 * BLOCK + at, (a * 10).to(tl.int32).to(tl.float32))


def test_functions_of_floats(rng: np.random.Generator) -> None:
    block = 77
    x, y = (rng.normal(size=block).astype(np.float32) for _ in range(2))
    x[3], y[5] = np.nan, np.nan
    out = np.zeros((8, block), np.float32)
    launch(floats_kernel, (1,), x, y, out, BLOCK=block)
    a, b = x.astype(np.float64), y.astype(np.float64)
    erf = np.vectorize(math.erf)(a)
    expected = [
        np.exp(a) / (1 + np.abs(b)),
        np.fmax(a, b) - np.fmin(a, 0.25),
        np.sqrt(np.abs(a)) + np.log(np.abs(b) + 1),
        np.sin(a) * np.cos(b) + erf,
        np.floor(a) + np.ceil(b),
        1 / (1 + np.exp(-a)) + a * b + a,
        np.where((a > b) & (a != 0.5), a, -b),
        np.trunc(np.nan_to_num(x * np.float32(10))),
    ]
    for row, values in zip(out, expected, strict=True):
        np.testing.assert_allclose(row, values, rtol=2e-5, atol=2e-6)


@triton.jit
def reductions_kernel(x, out, index, M: tl.constexpr, N: tl.constexpr):
    rows = tl.arange(0, M)
    columns = tl.arange(0, N)
    value = tl.load(x + rows[:, None] * N + columns[None, :])
    tl.store(out + columns, tl.sum(value, 0))
    tl.store(out + N + columns, tl.max(value, 0))
    tl.store(out + 2 * N + rows, tl.sum(value, 1))
    tl.store(out + 3 * N + rows, tl.min(value, 1))
    tl.store(out + 4 * N, tl.sum(value))
    tl.store(index + rows, tl.argmax(value, 1))
    tl.store(index + M + columns, tl.argmin(value, 0))
    tl.store(out + 5 * N + rows[:, None] * N + columns[None, :], tl.cumsum(value, 1))


@pytest.mark.parametrize(("rows", "columns"), [(4, 32), (3, 13)])
def test_reductions_along_each_axis(rng: np.random.Generator, rows: int, columns: int) -> None:
    x = rng.normal(size=(rows, columns)).astype(np.float32)
    x[1, 2] = x[1, 1] = 9  # The first of two greatest.
    out = np.zeros(5 * columns + rows * columns, np.float32)
    index = np.zeros(rows + columns, np.int32)
    launch(reductions_kernel, (1,), x, out, index, M=rows, N=columns)
    close = {"rtol": 1e-5, "atol": 1e-5}
    np.testing.assert_allclose(out[:columns], x.sum(0), **close)
    np.testing.assert_array_equal(out[columns : 2 * columns], x.max(0))
    np.testing.assert_allclose(out[2 * columns :][:rows], x.sum(1), **close)
    np.testing.assert_array_equal(out[3 * columns :][:rows], x.min(1))
    np.testing.assert_allclose(out[4 * columns], x.sum(), **close)
    np.testing.assert_array_equal(index, [*x.argmax(1), *x.argmin(0)])
    np.testing.assert_allclose(out[5 * columns :].reshape(x.shape), x.cumsum(1), **close)


@triton.jit
def greatest_kernel(x, out, M: tl.constexpr, N: tl.constexpr):
    rows, columns = tl.arange(0, M), tl.arange(0, N)
    value = tl.load(x + rows[:, None] * N + columns[None, :])
    tl.store(out + columns, tl.argmax(value, 0))


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_what_a_reduction_gives_beside_its_result_has_a_place_of_its_own(
    rng: np.random.Generator, dtype: str
) -> None:
    # The greatest values, which nobody reads, were written over the indices of earlier columns.
    x = rng.integers(0, 120, (16, 32)).astype(dtype)
    out = np.zeros(32, np.int32)
    launch(greatest_kernel, (1,), x, out, M=16, N=32)
    np.testing.assert_array_equal(out, x.argmax(0))


@triton.jit
def strided_kernel(x, out, sx, sy, M, N, BM: tl.constexpr, BN: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)[:, None]
    columns = tl.program_id(1) * BN + tl.arange(0, BN)[None, :]
    inside = (rows < M) & (columns < N)
    value = tl.load(x + rows * sx + columns * sy, mask=inside, other=-1)
    tl.store(out + rows * N + columns, value, mask=inside)
    turned = tl.trans(value)
    tl.store(out + M * N + tl.trans(columns) * M + tl.trans(rows), turned, mask=tl.trans(inside))


@pytest.mark.parametrize("view", ["plain", "transposed", "reversed", "every other"])
@pytest.mark.parametrize("dtype", ["float16", slow("int64"), slow("int8")])
def test_views_are_read_where_they_lie(rng: np.random.Generator, view: str, dtype: str) -> None:
    memory = rng.integers(-100, 100, (38, 52)).astype(dtype)
    x = {
        "plain": memory,
        "transposed": memory.T,
        "reversed": memory[::-1, ::-1],
        "every other": memory[1::2, ::3],
    }[view]
    m, n = x.shape
    out = np.zeros((2, m * n), dtype)
    strides = [stride // x.itemsize for stride in x.strides]
    grid = (math.ceil(m / 16), math.ceil(n / 8))
    launch(strided_kernel, grid, x, out, *strides, m, n, BM=16, BN=8)
    np.testing.assert_array_equal(out[0].reshape(m, n), x)
    np.testing.assert_array_equal(out[1].reshape(n, m), x.T)


@triton.jit
def gather_kernel(table, index, out, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    chosen = tl.load(index + at, mask=at < n, other=0)
    value = tl.load(table + chosen * 2 + at % 2, mask=(at < n) & (chosen != 3), other=-7)
    tl.store(out + (BLOCK - 1 - at), value, mask=at % 3 != 1)


def test_scattered_addresses_and_masks(rng: np.random.Generator) -> None:
    block, n = 40, 37
    table = rng.normal(size=24).astype(np.float32)
    index = rng.integers(0, 12, n).astype(np.int64)
    out = np.full(block, 5, np.float32)
    launch(gather_kernel, (1,), table, index, out, n, BLOCK=block)
    expected = np.full(block, 5, np.float32)
    for at in range(block):
        if at % 3 != 1:
            is_read = at < n and index[at] != 3
            expected[block - 1 - at] = table[index[at] * 2 + at % 2] if is_read else -7
    np.testing.assert_array_equal(out, expected)


@triton.jit
def loops_kernel(x, out, n, BLOCK: tl.constexpr):
    at = x + tl.arange(0, BLOCK)
    total = tl.zeros([BLOCK], tl.float32)
    before = tl.zeros([BLOCK], tl.float32)
    count = 0
    for step in range(n):
        value = tl.load(at)
        if step % 2 == 0:
            total += value * step
        else:
            total, before = before, total
            count += step
        at += BLOCK
    while count > 3:
        count -= 2
        before += 1
    tl.store(out + tl.arange(0, BLOCK), total)
    tl.store(out + BLOCK + tl.arange(0, BLOCK), before + count)


def test_loops_carry_tiles_pointers_and_numbers(rng: np.random.Generator) -> None:
    block, n = 24, 5
    x = rng.normal(size=(n, block)).astype(np.float32)
    out = np.zeros((2, block), np.float32)
    launch(loops_kernel, (1,), x, out, n, BLOCK=block)
    total, before, count = np.zeros(block, np.float32), np.zeros(block, np.float32), 0
    for step in range(n):
        if step % 2 == 0:
            total = total + x[step] * np.float32(step)
        else:
            total, before, count = before, total, count + step
    while count > 3:
        count, before = count - 2, before + 1
    np.testing.assert_allclose(out, [total, before + count], rtol=1e-6)


@triton.jit
def early_kernel(out, n):
    at = tl.program_id(0)
    if at >= n:
        return
    tl.store(out + at, at + tl.num_programs(0) * 10 + tl.program_id(1) * 100)


def test_programs_return_early() -> None:
    out = np.zeros(6, np.int32)
    launch(early_kernel, (6, 1), out, 4)
    np.testing.assert_array_equal(out, [60, 61, 62, 63, 0, 0])


@triton.jit
def blocks_kernel(x, out, M, N, BM: tl.constexpr, BN: tl.constexpr):
    source = tl.make_block_ptr(x, (M, N), (N, 1), (1, 0), (BM, BN), (1, 0))
    target = tl.make_block_ptr(out, (N, M), (M, 1), (0, 0), (BN, BM), (1, 0))
    for _ in range(0, N, BN):
        value = tl.load(source, boundary_check=(0, 1), padding_option="zero")
        tl.store(target, tl.trans(value), boundary_check=(0, 1))
        source = tl.advance(source, (0, BN))
        target = tl.advance(target, (BN, 0))


def test_block_pointers_check_their_bounds(rng: np.random.Generator) -> None:
    m, n = 5, 21
    x = rng.normal(size=(m, n)).astype(np.float32)
    out = np.full((n, m), 9, np.float32)
    launch(blocks_kernel, (1,), x, out, m, n, BM=8, BN=8)
    np.testing.assert_array_equal(out, np.vstack([x[1:], np.zeros((1, n))]).T.astype(np.float32))


@triton.jit
def atomics_kernel(x, index, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at, mask=at < n, other=0)
    tl.atomic_add(out + tl.load(index + at, mask=at < n, other=0), value, mask=at < n)
    tl.atomic_max(out + 8, tl.max(value))


def test_atomic_additions_from_many_programs(rng: np.random.Generator) -> None:
    n = 200
    x = rng.integers(-9, 9, n).astype(np.int32)
    index = rng.integers(0, 8, n).astype(np.int32)
    out = np.zeros(9, np.int32)
    launch(atomics_kernel, (math.ceil(n / 32),), x, index, out, n, BLOCK=32)
    np.testing.assert_array_equal(out[:8], np.bincount(index, x, 8).astype(np.int32))
    assert out[8] == x.max()
