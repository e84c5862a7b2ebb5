"""Whole numbers of 8 and 16 bits wrap at each operator, whatever they are computed in."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from opkit import compiler as oc

_PROGRAMS: dict[str, Callable[[Any, Any], Any]] = {
    "sums that fractions read": lambda x, y: (x + y).astype("float32") * 0.5,
    "products that are compared": lambda x, y: (x * y).apply("less", y),
    "bits turned over, and their size": lambda x, y: (x.apply("bitwise_not") - y).apply("abs"),
    "the larger of sums": lambda x, y: (x + y).apply("maximum", y - x),
    "only low bits": lambda x, y: (x + y) * x - y,
    "a sum in a wider type": lambda x, y: (x + y).astype("int32") + 1,
    "a narrower type": lambda x, y: (x.astype("int32") * 1000).astype(x.dtype) + y,
    "signs": lambda x, y: (x + y).apply("sign"),
}


def everywhere(dtype: str) -> list[np.ndarray]:
    limits = np.iinfo(dtype)
    random = np.random.default_rng(3)
    return [random.integers(limits.min, limits.max + 1, 600).astype(dtype) for _ in range(2)]


def check(program: Callable[[Any, Any], Any], dtype: str, target: str) -> None:
    specs = [oc.TensorSpec(name, (600,), dtype) for name in ("x", "y")]
    arrays = everywhere(dtype)
    result = oc.compile(program, *specs, target=target)(*arrays)
    graph = oc.trace(program, specs)
    wanted = oc.run_graph(graph, dict(zip("xy", arrays, strict=True)), {})
    np.testing.assert_array_equal(result, wanted[graph.outputs[0][1]])


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", _PROGRAMS)
def test_on_the_chip(name: str) -> None:
    check(_PROGRAMS[name], "uint8" if name.startswith("bits") else "int8", "ascendc")


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16"])
@pytest.mark.parametrize("target", ["ascendc", "cpp"])
@pytest.mark.parametrize("name", _PROGRAMS)
def test_every_type(name: str, dtype: str, target: str) -> None:
    check(_PROGRAMS[name], dtype, target)


@pytest.mark.parametrize("target", ["ascendc", "cpp"])
def test_signs_of_numbers_without_a_sign(target: str) -> None:
    numbers = np.array([0, 1, 200], np.uint8)
    kernel = oc.compile(lambda x: x.apply("sign"), oc.TensorSpec("x", (3,), "uint8"), target=target)
    np.testing.assert_array_equal(kernel(numbers), np.sign(numbers))


def test_truth_that_is_known_is_chosen() -> None:
    truth = np.array([True, False, True])
    kernel = oc.compile(
        lambda c, x: (c.apply("where", x, True), c.apply("where", False, x)),
        oc.TensorSpec("c", (3,), "bool"),
        oc.TensorSpec("x", (3,), "bool"),
    )
    x = np.array([False, False, True])
    for result, wanted in zip(
        kernel(truth, x), (np.where(truth, x, True), np.where(truth, False, x)), strict=True
    ):
        np.testing.assert_array_equal(result, wanted)


def test_elements_are_taken_from_one_row_on_this_machine() -> None:
    x, places = np.arange(5, dtype=np.float32), np.array([4, -1, 0], np.int32)
    specs = [oc.TensorSpec("x", (5,), "float32"), oc.TensorSpec("places", (3,), "int32")]
    kernel = oc.compile(lambda x, places: x.apply("take", places, axis=0), *specs, target="cpp")
    np.testing.assert_array_equal(kernel(x, places), x[places])


@pytest.mark.parametrize("dtype", ["bool", "uint8"])
def test_the_size_of_what_is_never_negative_is_itself(dtype: str) -> None:
    # The kernel of a bool's did not compile: Abs takes no such type.
    builder = oc.GraphBuilder("size")
    builder.output("y", builder.input("x", (8,), dtype).apply("abs"))
    assert [node.operator for node in oc.expand(builder.graph()).nodes] == []
