"""Sorting, the largest k and the place of an extreme, under every check."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from opkit import compiler as oc
from opkit.compiler import TensorSpec as Spec
from opkit.profiling import Profile
from opkit.sanitizer import Check

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


def _special(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """Few values, so that there are ties, with NaN and infinities among fractions."""
    rng = np.random.default_rng(2)
    x = rng.integers(-3, 4, shape).astype(dtype)
    if "float" in dtype:
        for value in (np.nan, np.inf, -np.inf, -0.0):
            x[rng.random(shape) < 0.06] = value
    return x


# A line a repeat, several a tile, one in parts, one for several cores; columns, few and many.
EXTREMES = (((100, 33), 1), ((40, 100), 1), ((3, 9001), 1), ((1, 20000), 1), ((60, 17), 0))
EXTREMES += (((2, 50, 130), 1), ((5, 3, 300), 1), ((1, 1), 1))
TYPES = ("float32", "float16", "int8", "uint8", "int16", "int32")


@pytest.mark.sampled(2)
@pytest.mark.parametrize("dtype", TYPES)
def test_places_of_extremes_are_numpys_for_every_way_that_lines_lie(dtype: str) -> None:
    shapes = EXTREMES if dtype == "float32" else EXTREMES[::3]
    for shape, axis in shapes:
        x = _special(shape, dtype)
        for name in ("argmax", "argmin"):
            kernel = oc.compile(
                lambda x, n=name, a=axis: x.apply(n, axis=a), Spec("x", shape, dtype), name=name
            )
            with Check(()) as checks:
                places = kernel(x)
            assert not checks.findings, (shape, dtype, checks.findings[0])
            np.testing.assert_array_equal(
                places, getattr(np, name)(x, axis=axis), f"{name} {shape}"
            )


@pytest.mark.sampled(3)
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("is_descending", [True, False])
def test_sorted_lines_are_numpys_for_every_length(dtype: str, is_descending: bool) -> None:
    # Odd lines of one run, of whole runs, of four, of more; the longest; all elements or the first.
    cases = (((33, 8), None), ((7, 32), 3), ((3, 129), 100), ((2, 700), None), ((1, 7680), 40))
    for shape, count in cases if dtype == "float32" else cases[1:4]:
        x = _special(shape, dtype)
        settings = {"descending": is_descending, "count": count}
        kernel = oc.compile(
            lambda x, s=settings: (x.apply("sort", **s), x.apply("argsort", **s)),
            Spec("x", shape, dtype),
            name="sorted_lines",
        )
        with Check(()) as checks:
            values, places = kernel(x)
        assert not checks.findings, (shape, dtype, checks.findings[0])
        order = np.argsort(x, axis=1, kind="stable")
        if is_descending:
            order = shape[1] - 1 - np.argsort(x[:, ::-1], axis=1, kind="stable")[:, ::-1]
        np.testing.assert_array_equal(places, order[:, :count], f"{shape} {dtype}")
        np.testing.assert_array_equal(values, np.take_along_axis(x, order, 1)[:, :count])


def test_nan_infinity_and_the_largest_float_keep_their_order_in_one_line() -> None:
    # NaN and infinity take the places of infinity and the largest float where these are not there.
    most = float(np.finfo(np.float32).max)
    x = np.array(
        [[most, np.inf, np.nan, 1.0, most], [most, np.nan, 2.0, most, -np.inf]], np.float32
    )
    kernel = oc.compile(_both, Spec("x", x.shape), name="sorted_both_limits")
    values, places = kernel(x)
    np.testing.assert_array_equal(places, [[2, 1, 0, 4, 3], [1, 0, 3, 2, 4]])
    np.testing.assert_array_equal(values, np.take_along_axis(x, places, 1))


def test_extremes_and_orders_are_the_vector_units() -> None:
    # The scalar unit compared one element with the next: 1 Mi took 6.6 ms on one core.
    x = np.random.default_rng(3).standard_normal((1, 1 << 17)).astype(np.float32)
    most = oc.compile(lambda x: x.apply("argmax", axis=1), Spec("x", x.shape), name="argmax")
    first = oc.compile(lambda x: x.topk(5, axis=1), Spec("x", (64, 1024)), name="first_five")
    with Profile(event_limit=0) as session:
        most(x)
        first(x.reshape(-1)[: 64 * 1024].reshape(64, 1024))
    assert all(timeline.task_us < 20 for timeline in session.timelines)


def test_a_line_that_is_too_long_to_sort_is_refused_at_the_users_line() -> None:
    with pytest.raises(oc.GraphError, match="9000 elements do not fit a core") as error:
        oc.compile(lambda x: x.apply("sort"), Spec("x", (2, 9000)))
    assert error.value.location is not None and error.value.location.file == __file__
    kernel = oc.compile(lambda x: x.apply("sort"), Spec("x", (2, oc.dimension("M"))))
    with pytest.raises(oc.GraphError, match="9000 elements do not fit a core"):
        kernel(np.zeros((2, 9000), np.float32))


def test_lines_across_rows_are_sorted_as_rows() -> None:
    kernel = oc.compile(lambda x: x.apply("argsort", axis=0), Spec("x", (70, 40), "float16"))
    kinds = [group.kind for group in kernel.stages.fused.groups]
    assert kinds == ["transpose", "sort", "transpose"]
    x = np.random.default_rng(0).integers(-9, 9, (70, 40)).astype(np.float16)
    np.testing.assert_array_equal(kernel(x), np.argsort(x, axis=0, kind="stable"))


@pytest.mark.slow
def test_the_processor_at_hand_orders_alike() -> None:
    kernel = oc.compile(_both, Spec("x", (3, 9), "bfloat16"), name="host_order", target="cpp")
    arrays = oc.random_arrays(kernel.graph, {})
    chip = oc.compile(kernel.graph)(*arrays)
    for actual, expected in zip(kernel(*arrays), chip, strict=True):
        np.testing.assert_array_equal(actual, expected)


@pytest.mark.parametrize(
    ("shape", "dtype", "k", "axis", "is_largest"),
    [((3, 5, 40), "float32", 3, 1, True), ((7, 70), "float16", 7, 0, False)],
)
def test_few_elements_across_lines_are_ordered_by_comparing_them(
    shape: tuple[int, ...], dtype: str, k: int, axis: int, is_largest: bool
) -> None:
    # Each line was one of 32 elements for the sorting instructions: 200 times as long.
    x = np.random.default_rng(0).integers(-3, 3, shape).astype(dtype)
    x.reshape(-1)[::11], x.reshape(-1)[5] = np.nan, -np.inf
    kernel = oc.compile(lambda x: x.topk(k, axis=axis, largest=is_largest), Spec("x", shape, dtype))
    assert not any(group.kind == "sort" for group in kernel.stages.fused.groups)
    with Check(()) as checks:
        values, places = kernel(x)
    assert not checks.findings, checks.findings[0]
    turned = np.flip(x, axis) if is_largest else x
    order = np.argsort(turned, axis=axis, kind="stable")
    order = shape[axis] - 1 - np.flip(order, axis) if is_largest else order
    expected = np.take(order, range(k), axis=axis)
    np.testing.assert_array_equal(places, expected)
    np.testing.assert_array_equal(values, np.take_along_axis(x, expected, axis))
