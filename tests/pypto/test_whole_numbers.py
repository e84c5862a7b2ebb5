"""Whole numbers, their bits and bytes: exact, as NumPy has them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from opkit import pypto
from opkit.compiler import GraphError

RANDOM = np.random.default_rng(4)
TYPES = ("int8", "uint8", "int16", "uint16", "int32")


def numbers(dtype: str) -> Any:
    """All sizes of numbers: as many bits as the type has, and fewer."""
    limits = np.iinfo(dtype)
    found = RANDOM.integers(limits.min, limits.max, (6, 32), endpoint=True).astype(dtype)
    found >>= RANDOM.integers(0, limits.bits, found.shape).astype(dtype)
    found[0, :6] = (limits.min, limits.max, limits.max - 1, 0, 1, limits.max // 2 + 1)
    return found


def run(function: Any, *arguments: Any) -> Any:
    program = pypto.jit(function)
    result = program(*arguments)
    # The vector unit has no uint16.
    is_there = all(each.dtype != "uint16" for each in program.last.graph.tensors.values())
    assert (program.last.runs_in == "kernels") == is_there, program.last.reason
    return result


@pytest.mark.slow
@pytest.mark.parametrize("dtype", TYPES)
def test_the_greatest_common_divisor(dtype: str) -> None:
    x, y = numbers(dtype), RANDOM.permutation(numbers(dtype))
    together = lambda x, y: (pypto.gcd(x, y), pypto.gcd(x, 12), x.gcd(y[:1]))  # noqa: E731
    both, number, row = run(together, x, y)
    np.testing.assert_array_equal(both, np.gcd(x, y))
    np.testing.assert_array_equal(number, np.gcd(x, np.array(12, dtype)))
    np.testing.assert_array_equal(row, np.gcd(x, y[:1]))
    assert both.dtype == x.dtype


@pytest.mark.sampled(2)
@pytest.mark.parametrize("dtype", TYPES)
def test_shifts_by_tensors_and_by_numbers(dtype: str) -> None:
    x = numbers(dtype)
    by = RANDOM.integers(0, np.iinfo(dtype).bits, x.shape).astype(dtype)
    by[:, :2] = (0, np.iinfo(dtype).bits - 1)
    together = lambda x, by: (x << by, x >> by, x << 3, x >> 5, pypto.bitwise_left_shift(3, by))  # noqa: E731
    left, right, three, five, number = run(together, x, by)
    np.testing.assert_array_equal(left, np.left_shift(x, by))
    np.testing.assert_array_equal(right, np.right_shift(x, by))
    np.testing.assert_array_equal(three, np.left_shift(x, np.array(3, dtype)))
    np.testing.assert_array_equal(five, np.right_shift(x, np.array(5, dtype)))
    np.testing.assert_array_equal(number, np.left_shift(np.array(3, dtype), by))
    assert left.dtype == right.dtype == x.dtype


@pytest.mark.slow
@pytest.mark.parametrize("dtype", TYPES)
def test_bytes_there_and_back(dtype: str) -> None:
    x = numbers(dtype)
    found = run(pypto.pack, x)
    np.testing.assert_array_equal(found, np.frombuffer(x.tobytes(), np.uint8))
    back = run(lambda x: pypto.unpack(x, getattr(pypto, f"DT_{dtype.upper()}")), found)
    np.testing.assert_array_equal(back, x.reshape(-1))


@pytest.mark.parametrize("mode", range(1, 8))
def test_patterns_take_every_second_or_fourth_element(mode: int) -> None:
    x = np.arange(96, dtype=np.float32).reshape(2, 3, 16)
    step, first = {1: (2, 0), 2: (2, 1), 7: (1, 0)}.get(mode, (4, mode - 3))
    np.testing.assert_array_equal(
        run(lambda x: pypto.gathermask(x, mode) + 0, x), x[..., first::step]
    )


@pytest.mark.parametrize(
    ("program", "message"),
    [
        (lambda x: pypto.pack(x), "pack takes tensors of one of int8, .*, not float32"),
        (lambda x: pypto.gcd(x, 3), "gcd takes tensors of one of int8"),
        (lambda x: pypto.gathermask(x, 8), "pattern_mode=8 is not 1 to 7"),
        (lambda x: pypto.gathermask(x[:, :6], 3), "6 elements a row are no multiple of 4"),
        (lambda x: pypto.unpack(x, pypto.DT_FP32), "unpack: opkit makes no float32 of float32"),
        (lambda x: pypto.quant_mx(x), "quant_mx works on 8 and 4 bit fractions"),
        (lambda x: x.apply("cast", dtype="int16") << 16, "bitwise_left_shift by 16 of 16 bits"),
    ],
)
def test_what_is_not_there_is_said(program: Any, message: str) -> None:
    with pytest.raises(GraphError, match=message):
        pypto.jit(program)(np.ones((4, 8), np.float32))
