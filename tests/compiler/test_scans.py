"""Sums along the way, whole numbers, convolutions and tables' gradients, under every check."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from opkit import compiler as oc
from opkit.compiler import TensorSpec as Spec
from opkit.sanitizer import Check

Run = Callable[..., tuple[np.ndarray, ...]]

CASES: dict[str, tuple[Callable[..., Any], tuple[oc.TensorSpec, ...]]] = {
    "sums along the first axis, of several blocks": (
        lambda x: x.apply("cumsum", axis=0),
        (Spec("x", (150, 3), "float32"),),
    ),
    "sums of whole numbers": (
        lambda x: x.apply("cumsum", axis=1),
        (Spec("x", (5, 6), "int32"),),
    ),
    "products along axes": (
        lambda x: (x.apply("prod", axis=(0, 2)), x.apply("cumprod", axis=1)),
        (Spec("x", (3, 5, 2), "float32"),),
    ),
    "whole numbers that wrap": (lambda x: x.sum(axis=1), (Spec("x", (7, 100), "int8"),)),
    "a convolution": (
        lambda x, w: x.apply("conv2d", w, padding=1).apply("relu"),
        (Spec("x", (2, 3, 8, 9), "float16"), Spec("w", (4, 3, 2, 2), "float16")),
    ),
    "a convolution with steps, gaps and groups": (
        lambda x, w: x.apply("conv2d", w, stride=2, dilation=(1, 2), groups=2),
        (Spec("x", (1, 4, 9, 11), "float32"), Spec("w", (6, 2, 1, 2), "float32")),
    ),
}


LONG = ("sums along the first axis, of several blocks",)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.slow if name in LONG else ()) for name in CASES],
)
def test_what_runs_along_axes_gives_what_numpy_gives(name: str, run_program: Run) -> None:
    function, specs = CASES[name]
    run_program(function, *specs)


@pytest.mark.parametrize("operator", ["sum", "max", "min"])
def test_whole_numbers_are_reduced_with_every_bit(operator: str) -> None:
    x = np.random.default_rng(1).integers(-(2**31), 2**31, (5, 70)).astype(np.int32)
    kernel = oc.compile(lambda x: x.apply(operator, axis=1), Spec("x", (5, 70), "int32"))
    expected = getattr(np, operator)(x, axis=1).astype(np.int32)
    np.testing.assert_array_equal(kernel(x), expected)


@pytest.mark.parametrize("extent", [70000, 65809])
def test_long_sums_of_whole_numbers_are_exact_and_wrap(extent: int) -> None:
    x = np.random.default_rng(3).integers(-(2**31), 2**31, (extent, 2)).astype(np.int32)
    kernel = oc.compile(lambda x: x.sum(axis=0), Spec("x", x.shape, "int32"))
    np.testing.assert_array_equal(kernel(x), x.sum(axis=0).astype(np.int32))


def test_sums_of_whole_numbers_along_an_axis_of_any_size_are_exact() -> None:
    kernel = oc.compile(
        lambda x: x.sum(axis=-1), Spec("x", (3, oc.dimension("M")), "int16"), name="sums_of_any"
    )
    for extent in (1, 700):
        x = np.random.default_rng(4).integers(-(2**15), 2**15, (3, extent)).astype(np.int16)
        with Check(()) as checks:
            actual = kernel(x)
        assert not checks.findings
        np.testing.assert_array_equal(actual, x.sum(axis=-1).astype(np.int16))


@pytest.mark.slow
def test_a_products_gradient_is_the_product_of_the_others() -> None:
    graph = oc.gradient(oc.trace(lambda x: x.apply("prod", axis=-1), [Spec("x", (3, 5))]))
    x = np.array([[1, 2, 3, 4, 5], [1, 0, 3, 4, 5], [0, 2, 3, 0, 5]], np.float32)
    grad = np.array([1, 2, 3], np.float32)
    given = {"x": x, "grad_y": grad}
    actual = oc.compile(graph)(*(given[tensor.name] for tensor in graph.inputs))
    expected = [[120, 60, 40, 30, 24], [0, 120, 0, 0, 0], [0, 0, 0, 0, 0]]
    np.testing.assert_allclose(actual, expected)


def test_a_tables_gradient_adds_up_what_each_row_was_taken_for() -> None:
    graph = oc.gradient(
        oc.trace(
            lambda table, index: table.apply("take", index),
            [Spec("table", (10, 6)), Spec("index", (3, 4), "int32")],
        )
    )
    random = np.random.default_rng(2)
    index = random.integers(-10, 10, (3, 4)).astype(np.int32)
    grad = random.normal(size=(3, 4, 6)).astype(np.float32)
    given = {"table": np.zeros((10, 6), np.float32), "index": index, "grad_y": grad}
    expected = np.zeros((10, 6))
    np.add.at(expected, index.reshape(-1), grad.reshape(-1, 6))
    actual = oc.compile(graph)(*(given[tensor.name] for tensor in graph.inputs))
    np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-5)


def test_kernels_that_do_not_fit_an_image_are_refused() -> None:
    with pytest.raises(oc.GraphError, match="does not fit 4"):
        oc.trace(
            lambda x, w: x.apply("conv2d", w), [Spec("x", (1, 1, 4, 4)), Spec("w", (1, 1, 5, 5))]
        )


@pytest.mark.parametrize(
    ("operator", "dtype"), [("cumsum", "int32"), ("cumprod", "float32"), ("prod", "int32")]
)
def test_scans_along_an_axis_of_any_size_are_right(operator: str, dtype: str) -> None:
    # Only sums of fractions were: others asked for a fixed size.
    kernel = oc.compile(
        lambda x: x.apply(operator, axis=-1),
        Spec("x", (3, oc.dimension("M")), dtype),
        name=f"{operator}_of_any",
    )
    generator = np.random.default_rng(8)
    for extent in (1, 7, 128, 300):
        x = generator.integers(-9, 9, (3, extent)).astype(np.int32) * 2 + 1
        if dtype == "float32":
            x = generator.uniform(0.9, 1.1, (3, extent)).astype(np.float32)
        with Check(()) as checks:
            actual = kernel(x)
        assert not checks.findings
        with np.errstate(over="ignore"):
            expected = getattr(np, operator)(x.astype("int64" if dtype == "int32" else float), -1)
        if dtype == "int32":
            np.testing.assert_array_equal(actual, expected.astype(np.int32))
        else:
            np.testing.assert_allclose(actual, expected, rtol=1e-5)
