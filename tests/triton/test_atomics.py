"""Atomics of Triton programs: extremes, what was there before, exchanges, by cores in turns."""

from __future__ import annotations

import numpy as np
import pytest

triton = pytest.importorskip("triton")
tl = pytest.importorskip("triton.language")

from opkit.triton import SlowKernel, launch  # noqa: E402

IGNORED = pytest.mark.filterwarnings(f"ignore::{SlowKernel.__module__}.SlowKernel")


@triton.jit
def places_kernel(counter, out, places, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    first = tl.atomic_add(counter, BLOCK)
    before = tl.atomic_add(out + at % 4, at, mask=at < n)
    tl.store(places + at, before + first * 1000, mask=at < n)


def test_what_was_there_before_is_that_of_programs_in_order() -> None:
    n, block = 20, 8
    counter, out, places = np.zeros(1, np.int32), np.zeros(4, np.int32), np.zeros(n, np.int32)
    with pytest.warns(SlowKernel, match="one after the other on one core"):
        launch(places_kernel, (3,), counter, out, places, n, BLOCK=block)
    expected, sums = [], [0, 0, 0, 0]
    for at in range(n):
        expected.append(sums[at % 4] + at // block * block * 1000)
        sums[at % 4] += at
    assert [*places] == expected
    assert [*out] == sums
    assert [*counter] == [24]


@triton.jit
def bits_kernel(x, value, old, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    given = tl.load(value + at)
    tl.atomic_and(x + at, given)
    tl.atomic_or(x + BLOCK + at, given)
    tl.atomic_xor(x + 2 * BLOCK + at, given)
    tl.atomic_max(x + 3 * BLOCK + at, given)
    tl.store(old + at, tl.atomic_xchg(x + 4 * BLOCK + at, given))


@pytest.mark.parametrize("dtype", ["int64", pytest.param("uint8", marks=pytest.mark.slow)])
@IGNORED
def test_what_no_instruction_does_is_done_in_turns(dtype: str) -> None:
    rng = np.random.default_rng(3)
    info = np.iinfo(dtype)
    x = rng.integers(info.min, info.max, (5, 10), dtype=dtype, endpoint=True)
    value = rng.integers(info.min, info.max, 10, dtype=dtype, endpoint=True)
    old, before = np.zeros(10, dtype), x.copy()
    launch(bits_kernel, (1,), x, value, old, BLOCK=10)
    expected = [before[0] & value, before[1] | value, before[2] ^ value]
    np.testing.assert_array_equal(x, [*expected, np.maximum(before[3], value), value])
    np.testing.assert_array_equal(old, before[4])


@triton.jit
def exchange_kernel(x, wanted, value, old, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(old + at, tl.atomic_cas(x + at, tl.load(wanted + at), tl.load(value + at)))


@IGNORED
def test_what_is_as_wanted_is_exchanged_by_its_bits() -> None:
    x = np.array([1, 2, 0, np.nan, 5], np.float32)
    wanted = np.array([1, 3, -0.0, np.nan, 5], np.float32)
    value, old = np.arange(10, 15, dtype=np.float32), np.zeros(5, np.float32)
    launch(exchange_kernel, (1,), x, wanted, value, old, BLOCK=5)
    np.testing.assert_array_equal(x, [10, 2, 0, 13, 14])
    np.testing.assert_array_equal(old, [1, 2, 0, np.nan, 5])


@triton.jit
def lock_kernel(lock, x):
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    tl.store(x, tl.load(x) * 2 + tl.program_id(0))
    tl.atomic_xchg(lock, 0)


@IGNORED
def test_a_lock_keeps_programs_apart() -> None:
    lock, x = np.zeros(1, np.int32), np.ones(1, np.int32)
    launch(lock_kernel, (5,), lock, x)
    expected = 1
    for program in range(5):
        expected = expected * 2 + program
    assert [*x] == [expected] and [*lock] == [0]


@triton.jit
def extremes_kernel(x, most, least, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    value = tl.load(x + tl.program_id(0) * BLOCK + at)
    tl.atomic_max(most + at, value)
    tl.atomic_min(least + at, value)


@pytest.mark.parametrize("dtype", ["float32", pytest.param("float16", marks=pytest.mark.slow)])
def test_extremes_of_floats_need_no_turns(dtype: str, recwarn: pytest.WarningsRecorder) -> None:
    x = np.random.default_rng(5).normal(size=(6, 24)).astype(dtype)
    most, least = np.full((2, 24), 0.25, dtype)
    launch(extremes_kernel, (6,), x, most, least, BLOCK=24)
    np.testing.assert_array_equal(most, np.maximum(x.max(0), dtype_of(dtype, 0.25)))
    np.testing.assert_array_equal(least, np.minimum(x.min(0), dtype_of(dtype, 0.25)))
    assert not recwarn.list


def dtype_of(dtype: str, value: float) -> np.generic:
    return np.dtype(dtype).type(value)


@triton.jit
def running_kernel(x, out, N: tl.constexpr):
    at = tl.arange(0, N)
    tl.store(out + at, tl.cumsum(tl.load(x + at), 0))


@IGNORED
def test_running_sums_of_halves_are_rounded_where_they_are_written() -> None:
    x = np.full(3000, 0.3, np.float16)
    out = np.zeros_like(x)
    launch(running_kernel, (1,), x, out, N=3000)
    # Rounded on the way, 0.3 is lost beside 512.
    np.testing.assert_array_equal(out, np.cumsum(x, dtype=np.float32).astype(np.float16))
