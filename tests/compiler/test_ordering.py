"""Sorting, the largest k and the place of an extreme, under every check."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from opkit import compiler as oc
from opkit.compiler import TensorSpec as Spec
from opkit.profiling import Profile

Run = Callable[..., tuple[np.ndarray, ...]]


def _both(x: oc.Value) -> tuple[oc.Value, oc.Value]:
    return x.apply("sort", descending=True), x.apply("argsort", descending=True)


# Large enough for several cores, whose results lie side by side.
CASES: dict[str, tuple[Callable[..., Any], tuple[oc.TensorSpec, ...]]] = {
    "sorted, with places": (_both, (Spec("x", (60, 37), "float16"),)),
    "whole numbers along the first axis": (
        lambda x: x.apply("sort", axis=0),
        (Spec("x", (33, 50), "int8"),),
    ),
    "the smallest, of numbers that are computed": (
        lambda x: (x * 2.0).topk(3, axis=1, largest=False),
        (Spec("x", (4, 20, 3), "float32"),),
    ),
    "places of extremes": (
        lambda x: (x.apply("argmax", axis=1), x.apply("argmin", axis=0, keepdims=True)),
        (Spec("x", (40, 50), "bfloat16"),),
    ),
}


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=() if at == 0 else pytest.mark.slow)
        for at, name in enumerate(CASES)
    ],
)
def test_an_order_is_numpys_and_kernels_are_clean(name: str, run_program: Run) -> None:
    function, specs = CASES[name]
    run_program(function, *specs)


@pytest.mark.slow
@pytest.mark.parametrize("is_largest", [True, False])
def test_the_first_of_a_line_that_fits_no_core_are_found_in_its_parts(is_largest: bool) -> None:
    x = np.random.default_rng(1).integers(-999, 999, (2, 9000)).astype(np.float32)
    kernel = oc.compile(
        lambda x: x.topk(5, largest=is_largest), Spec("x", x.shape), name="first_of_parts"
    )
    values, places = kernel(x)
    order = np.argsort(-x if is_largest else x, axis=1, kind="stable")[:, :5]
    np.testing.assert_array_equal(places, order)
    np.testing.assert_array_equal(values, np.take_along_axis(x, order, 1))


def test_values_and_places_come_from_one_kernel_for_any_size() -> None:
    kernel = oc.compile(_both, Spec("x", (oc.dimension("M"), 16)), name="sorted_both")
    x = np.array([[3, np.nan, -0.0, 0.0] * 4] * 3, np.float32)
    with Profile() as profile:
        values, places = kernel(x)
    assert len(profile.timelines) == 1
    assert np.isnan(values[:, :4]).all()
    np.testing.assert_array_equal(places[0], [1, 5, 9, 13, 0, 4, 8, 12, 2, 3, 6, 7, 10, 11, 14, 15])


def test_a_line_that_is_too_long_to_sort_is_refused_at_the_users_line() -> None:
    with pytest.raises(oc.GraphError, match="9000 elements do not fit a core") as error:
        oc.compile(lambda x: x.apply("sort"), Spec("x", (2, 9000)))
    assert error.value.location is not None and error.value.location.file == __file__
    kernel = oc.compile(lambda x: x.apply("sort"), Spec("x", (2, oc.dimension("M"))))
    with pytest.raises(oc.GraphError, match="9000 elements do not fit a core"):
        kernel(np.zeros((2, 9000), np.float32))


@pytest.mark.slow
def test_the_processor_at_hand_orders_alike() -> None:
    kernel = oc.compile(_both, Spec("x", (3, 9), "bfloat16"), name="host_order", target="cpp")
    arrays = oc.random_arrays(kernel.graph, {})
    chip = oc.compile(kernel.graph)(*arrays)
    for actual, expected in zip(kernel(*arrays), chip, strict=True):
        np.testing.assert_array_equal(actual, expected)
