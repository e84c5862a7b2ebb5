"""Divisions of whole numbers: every bit is right, on every target."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from opkit import compiler as oc
from opkit.compiler.ir.graph import GraphError

_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "mod": np.mod,
    "floor_divide": np.floor_divide,
    "fmod": np.fmod,
}


def edges(dtype: str) -> np.ndarray:
    """Return numbers at the ends of a type, near powers of two, and between."""
    limits = np.iinfo(dtype)
    powers = [1 << place for place in range(limits.bits)]
    found = {s * (p + d) for p in powers for d in (-1, 0, 1) for s in (1, -1)}
    random = np.random.default_rng(7)
    found |= {int(n) for n in random.integers(limits.min, limits.max, 20)}
    found |= {limits.min, limits.max, 0, 3, 7, 10, -3, -7, -10}
    return np.array(sorted(n for n in found if limits.min <= n <= limits.max), dtype)


def expected(name: str, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    with np.errstate(all="ignore"):
        return np.asarray(_OPERATORS[name](a, b))


def divide(x: Any, y: Any) -> tuple[Any, ...]:
    return tuple(x.apply(name, y) for name in _OPERATORS)


def check(results: Any, a: np.ndarray, b: np.ndarray) -> None:
    for name, result in zip(_OPERATORS, results, strict=True):
        assert result.dtype == a.dtype
        np.testing.assert_array_equal(result, expected(name, a, b), err_msg=name)


@pytest.mark.parametrize(
    "dtype",
    ["int32", "uint8", *(pytest.param(d, marks=pytest.mark.slow) for d in ("int8", "int16"))],
)
def test_numbers_by_numbers(dtype: str) -> None:
    a, b = (each.reshape(-1) for each in np.meshgrid(edges(dtype), edges(dtype)))
    length = oc.dimension("M")
    specs = [oc.TensorSpec(name, (length,), dtype) for name in ("x", "y")]
    check(oc.compile(divide, *specs)(a, b), a, b)


@pytest.mark.parametrize(
    "divisor",
    [7, -(2**31), *(pytest.param(n, marks=pytest.mark.slow) for n in (1, -1, -49, 10**6 + 3))],
)
def test_numbers_by_a_known_number(divisor: int) -> None:
    numbers = edges("int32")
    spec = oc.TensorSpec("x", (oc.dimension("M"),), "int32")
    results = oc.compile(lambda x: divide(x, divisor), spec)(numbers)
    check(results, numbers, np.full_like(numbers, divisor))


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_on_this_machine(dtype: str) -> None:
    a, b = (each.reshape(-1) for each in np.meshgrid(edges(dtype), edges(dtype)))
    specs = [oc.TensorSpec(name, (a.size,), dtype) for name in ("x", "y")]
    check(oc.compile(divide, *specs, target="cpp")(a, b), a, b)


def test_formulas_divide_whole_numbers() -> None:
    graph = oc.formula_graph(
        "divided",
        [oc.TensorSpec("x", (oc.dimension("M"),), "int32")],
        [oc.FormulaOutput("y", "x // 7 * 10 + x % 7", "int32")],
        [],
    )
    numbers = np.array([123456789, -123456789, 16777217], np.int32)
    wanted = numbers // 7 * 10 + numbers % 7
    np.testing.assert_array_equal(oc.compile(graph)(numbers), wanted)


def divided_by(number: int, dtype: str) -> None:
    oc.compile(lambda x: x.apply("mod", number), oc.TensorSpec("x", (64,), dtype))


@pytest.mark.parametrize(
    ("number", "dtype", "message"),
    [
        (0, "int32", "whole numbers do not divide by 0"),
        (-5, "uint8", "-5 is no uint8"),
        (1, "bool", "truth values do not divide"),
    ],
)
def test_what_cannot_be_divided_is_said_at_its_line(number: int, dtype: str, message: str) -> None:
    with pytest.raises(GraphError, match=message) as caught:
        divided_by(number, dtype)
    assert caught.value.location is not None
    assert caught.value.location.file.endswith("test_whole_division.py")


def test_a_number_out_of_range_compares() -> None:
    numbers = np.array([0, 3, 255], np.uint8)
    kernel = oc.compile(lambda x: x.apply("less", 300), oc.TensorSpec("x", (3,), "uint8"))
    np.testing.assert_array_equal(kernel(numbers), numbers < 300)


def test_powers_of_whole_numbers_by_a_tensor_are_refused() -> None:
    spec = oc.TensorSpec("x", (64,), "int32")
    with pytest.raises(GraphError, match="to the power of a tensor"):
        oc.compile(lambda x: x.apply("pow", x), spec)


def test_pythons_operators_divide() -> None:
    x = np.array([9, -9, 100], np.int32)
    kernel = oc.compile(
        lambda x: (x // 4, 1000 // x, x % 4, 1000 % x, 6 & x), oc.TensorSpec("x", (3,), "int32")
    )
    for result, wanted in zip(kernel(x), (x // 4, 1000 // x, x % 4, 1000 % x, 6 & x), strict=True):
        np.testing.assert_array_equal(result, wanted)
