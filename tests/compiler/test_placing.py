"""Elements and rows that are put at places, or joined there, by the cores that these belong to."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from opkit import compiler as oc
from opkit.compiler import TensorSpec as Spec
from opkit.compiler.tracing.reference import from_storage
from opkit.errors import KernelFault
from opkit.sanitizer import Check

# Shapes of the table, the indices and the elements, and the axis.
SHAPES = {
    "a line in parts": ((9000,), (5000,), (5000,), 0),
    "a line of few places, each many times": ((3,), (4100,), (4100,), 0),
    "lines of a core each": ((13, 37), (13, 50), (13, 50), 1),
    "short lines, many together": ((700, 5), (700, 7), (700, 7), 1),
    "long lines with the same indices": ((5, 9000), (1, 2500), (5, 2500), 1),
    "elements of lines side by side": ((4, 9, 3), (4, 11, 3), (4, 11, 3), 1),
    "columns": ((60, 70), (33, 70), (33, 70), 0),
    "rows that are no whole blocks": ((70, 20), (300, 1), (300, 20), 0),
    "rows of batches": ((3, 70, 33), (3, 50, 1), (3, 50, 33), 1),
    "rows at the same indices in batches": ((3, 70, 33), (1, 50, 1), (3, 50, 33), 1),
    "rows wider than a copy": ((3, 5000), (7, 1), (7, 5000), 0),
    "more rows than a core holds": ((7000, 16), (40, 1), (40, 16), 0),
}


def put(name: str, dtype: str, is_added: bool) -> tuple[oc.Compiled, tuple[Any, ...], Any]:
    """Return a program, inputs for it, and what it gives."""
    shape, places, picked, axis = SHAPES[name]
    kernel = oc.compile(
        lambda x, i, s: x.apply("put_along", i, s, axis=axis, add=is_added),
        *(Spec("x", shape, dtype), Spec("i", places, "int32"), Spec("s", picked, dtype)),
        name="placed",
    )
    rng = np.random.default_rng(len(name))
    x, source = rng.integers(-5, 6, shape), rng.integers(-5, 6, picked)
    index = rng.integers(-shape[axis], shape[axis], places).astype(np.int32)
    where = list(np.indices(picked))
    where[axis] = np.broadcast_to(index, picked).astype(np.int64)
    expected = x.copy()
    if is_added:
        np.add.at(expected, tuple(where), source)
    else:
        for at in np.ndindex(*picked):
            expected[tuple(each[at] for each in where)] = source[at]
    return kernel, (oc.to_storage(x, dtype), index, oc.to_storage(source, dtype)), expected


@pytest.mark.sampled(6)
@pytest.mark.parametrize(
    ("dtype", "is_added"),
    [
        *((dtype, True) for dtype in ("float32", "float16", "bfloat16", "int32")),
        *((dtype, False) for dtype in ("float32", "bfloat16", "int8")),
    ],
)
@pytest.mark.parametrize("name", SHAPES)
def test_elements_come_to_their_places_in_order(name: str, dtype: str, is_added: bool) -> None:
    kernel, given, expected = put(name, dtype, is_added)
    with Check(()) as checks:
        actual = kernel(*given)
    assert not checks.findings, checks.findings[0]
    np.testing.assert_array_equal(from_storage(actual, dtype), expected)


JOINS = {"max": np.maximum, "min": np.minimum, "multiply": np.multiply}


@pytest.mark.sampled(6)
@pytest.mark.parametrize("dtype", ["float32", "float16", "int32"])
@pytest.mark.parametrize("join", JOINS)
@pytest.mark.parametrize("name", ["lines of a core each", "columns", "rows of batches"])
def test_elements_are_joined_at_their_places(name: str, join: str, dtype: str) -> None:
    shape, places, picked, axis = SHAPES[name]
    kernel = oc.compile(
        lambda x, i, s: x.apply("join_along", i, s, axis=axis, join=join),
        *(Spec("x", shape, dtype), Spec("i", places, "int32"), Spec("s", picked, dtype)),
        name="joined",
    )
    rng = np.random.default_rng(7)
    x, source = rng.integers(1, 3, shape).astype(dtype), rng.integers(-9, 9, picked).astype(dtype)
    if join == "multiply":
        source = np.sign(source)
    index = rng.integers(-shape[axis], shape[axis], places).astype(np.int32)
    where = list(np.indices(picked))
    where[axis] = np.broadcast_to(index, picked).astype(np.int64)
    expected = x.copy()
    JOINS[join].at(expected, tuple(where), source)
    with Check(()) as checks:
        actual = kernel(x, index, source)
    assert not checks.findings, checks.findings[0]
    np.testing.assert_array_equal(actual, expected)


@pytest.mark.parametrize("name", ["lines of a core each", "rows of batches"])
def test_what_is_no_number_is_the_largest(name: str) -> None:
    shape, places, picked, axis = SHAPES[name]
    kernel = oc.compile(
        lambda x, i, s: x.apply("join_along", i, s, axis=axis, join="max"),
        *(Spec("x", shape), Spec("i", places, "int32"), Spec("s", picked)),
        name="joined",
    )
    x, source = np.zeros(shape, np.float32), np.ones(picked, np.float32)
    source.reshape(-1)[::5] = np.nan
    index = np.arange(np.prod(places)).reshape(places) % shape[axis]
    where = list(np.indices(picked))
    where[axis] = np.broadcast_to(index, picked)
    expected = x.copy()
    np.maximum.at(expected, tuple(where), source)
    actual = kernel(x, index.astype(np.int32), source)
    np.testing.assert_array_equal(actual, expected)


def test_sizes_of_a_launch_are_refused_where_elements_are_joined() -> None:
    kernel = oc.compile(
        lambda x, i, s: x.apply("join_along", i, s, axis=0, join="max"),
        *(Spec("x", (oc.dimension("N"), 3000)), Spec("i", (4, 3000), "int32")),
        Spec("s", (4, 3000)),
    )
    with pytest.raises(oc.GraphError, match="no more than 2048 behind the axis"):
        kernel(
            *(np.zeros((5, 3000), np.float32), np.zeros((4, 3000), np.int32)),
            np.zeros((4, 3000), np.float32),
        )


def test_many_elements_are_the_work_of_many_cores() -> None:
    # One core put all elements of a line, from global memory: 1 Mi took 2.5 ms.
    kernel, _, _ = put("a line in parts", "float32", True)
    (launch,) = kernel.launches({})
    assert launch.block_dim > 8


@pytest.mark.parametrize("name", ["a line in parts", "short lines, many together", "columns"])
@pytest.mark.parametrize("is_below", [False, True])
def test_a_place_that_is_none_is_a_fault(name: str, is_below: bool) -> None:
    kernel, (x, index, source), _ = put(name, "float32", True)
    extent = SHAPES[name][0][SHAPES[name][3]]
    index.reshape(-1)[-1] = -extent - 1 if is_below else extent
    with pytest.raises(KernelFault) as fault:
        kernel(x, index, source)
    assert __file__ in str(fault.value)


def test_nothing_is_put_where_there_are_no_indices() -> None:
    kernel = oc.compile(
        lambda x, i, s: x.apply("put_along", i, s, axis=0, add=True),
        *(Spec("x", (50,)), Spec("i", (0,), "int32"), Spec("s", (0,))),
    )
    x = np.arange(50, dtype=np.float32)
    actual = kernel(x, np.zeros(0, np.int32), np.zeros(0, np.float32))
    np.testing.assert_array_equal(actual, x)
