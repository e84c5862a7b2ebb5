"""What vector cores compute before the cube multiplies it, in one kernel, under every check."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from opkit import compiler as oc
from opkit.compiler import TensorSpec as Spec
from opkit.compiler.codegen.native import NativeKernel
from opkit.sanitizer import Check

H = "float16"
M = oc.dimension("M")


def run(function: Callable[..., Any], *specs: oc.TensorSpec, **sizes: int) -> None:
    """Run a program under every check, and hold each of its stages against float64."""
    program = oc.compile(function, *specs)
    with Check(()) as checks:
        assert oc.verify(program, oc.random_arrays(program.graph, sizes)) is None
    assert not checks.findings, checks.findings[0]


def _quantised(x: oc.Value, w: oc.Value, s: oc.Value) -> oc.Value:
    whole = (x * 8.0).apply("round").apply("clamp", low=-127.0, high=127.0).astype("int8")
    return (whole @ w.T).astype("float32") * s


CASES: dict[str, tuple[Callable[..., Any], tuple[oc.TensorSpec, ...]]] = {
    "weights dequantised": (
        lambda x, w, s: x @ (w.astype(H) * s),
        (Spec("x", (33, 70), H), Spec("w", (70, 130), "int8"), Spec("s", (130,), H)),
    ),
    "rows normalised, a bias and an activation behind": (
        lambda x, y, b: (x.apply("softmax") @ y + b).apply("relu"),
        (Spec("x", (100, 96), H), Spec("y", (96, 70), H), Spec("b", (70,), H)),
    ),
    "both matrices computed": (
        lambda x, y: (x * 2.0) @ y.apply("tanh"),
        (Spec("x", (65, 80), H), Spec("y", (80, 48), H)),
    ),
    "what is multiplied is added again": (
        lambda x, y: x.apply("sigmoid") @ y + x.apply("sigmoid"),
        (Spec("x", (65, 64), H), Spec("y", (64, 64), H)),
    ),
    "batches": (
        lambda x, y: x.apply("exp") @ y,
        (Spec("x", (3, 33, 40), H), Spec("y", (3, 40, 50), H)),
    ),
    "quantised to whole numbers": (
        _quantised,
        (Spec("x", (40, 64), "float32"), Spec("w", (50, 64), "int8"), Spec("s", (50,), "float32")),
    ),
    "by a Matmul object": (
        lambda x, y, b: x.apply("relu") @ y + b,
        (
            Spec("x", (40, 64), "float32"),
            Spec("y", (64, 50), "float32"),
            Spec("b", (50,), "float32"),
        ),
    ),
    "both sides, one after another in the same memory": (
        lambda x, y: (x * 0.5 + 0.25) @ y.apply("softmax").T,
        (Spec("x", (33, 7), H), Spec("y", (48, 7), H)),
    ),
    "by a Matmul object on fewer cores than compute first": (
        lambda x, y: x @ y.apply("relu"),
        (Spec("x", (16, 1024), "float32"), Spec("y", (1024, 16), "float32")),
    ),
    "by a Matmul object, an activation behind": (
        lambda x, y: (x.apply("relu") @ y).apply("silu"),
        (Spec("x", (40, 64), "float32"), Spec("y", (64, 50), "float32")),
    ),
    "something behind, on fewer cores than compute first": (
        lambda x, y: (x.sum(axis=2, keepdims=True) @ y).apply("relu"),
        (Spec("x", (17, 31, 33), "float32"), Spec("y", (1, 257), "float32")),
    ),
    "a number computed along the columns": (
        lambda x, y: (x / x.sum(axis=0, keepdims=True)) @ y,
        (Spec("x", (90, 64), H), Spec("y", (64, 40), H)),
    ),
}


LONG = {
    "batches",
    "by a Matmul object",
    "by a Matmul object, an activation behind",
    "a number computed along the columns",
}


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.slow] if name in LONG else []) for name in CASES],
)
def test_what_is_multiplied_is_computed_in_the_same_kernel(name: str) -> None:
    function, specs = CASES[name]
    assert [group.kind for group in oc.compile(function, *specs).lowered.groups] == ["matmul"]
    run(function, *specs)


@pytest.mark.slow
def test_one_program_serves_rows_of_any_number_and_length() -> None:
    def program(x: oc.Value, y: oc.Value) -> oc.Value:
        return x.apply("softmax") @ y

    specs = (Spec("x", (M, oc.dimension("K")), H), Spec("y", (oc.dimension("K"), 32), H))
    assert list(oc.compile(program, *specs).sources) == ["program", "program_parts"]
    for rows, columns in ((1, 16), (70, 100), (3, 30_000)):
        run(program, *specs, M=rows, K=columns)


def test_the_first_of_several_products_computes_what_all_of_them_read() -> None:
    def program(x: oc.Value, a: oc.Value, b: oc.Value) -> tuple[oc.Value, ...]:
        norm = x.apply("sigmoid")
        return norm @ a, norm @ b, norm

    specs = (Spec("x", (40, 64), H), Spec("a", (64, 33), H), Spec("b", (64, 48), H))
    first, second = oc.compile(program, *specs).lowered.groups
    assert [part.kind for part in first.before] == ["vector"] and not second.before
    run(program, *specs)


def test_what_a_product_needs_from_two_ways_stays_apart() -> None:
    def program(x: oc.Value, y: oc.Value) -> oc.Value:
        one = x.apply("sigmoid")
        return one @ (one.T @ y)

    specs = (Spec("x", (40, 64), H), Spec("y", (40, 33), H))
    groups = oc.compile(program, *specs).lowered.groups
    assert [len(group.before) for group in groups if group.kind == "matmul"] == [1, 0]
    run(program, *specs)


@pytest.mark.slow
def test_a_matrix_for_some_batches_is_laid_out_before() -> None:
    specs = (Spec("x", (2, 1, 20, 32), H), Spec("y", (2, 3, 32, 40), H))
    groups = oc.compile(lambda x, y: x.apply("relu") @ y, *specs).lowered.groups
    assert [group.kind for group in groups] == ["vector", "matmul"]
    run(lambda x, y: x.apply("relu") @ y, *specs)


def test_what_comes_first_is_there_where_there_is_nothing_to_multiply() -> None:
    specs = (Spec("x", (5, 8), H), Spec("y", (8, 0), H))
    program = oc.compile(lambda x, y: (x.apply("relu") @ y, x.apply("relu")), *specs)
    x = np.arange(-20, 20, dtype=np.float16).reshape(5, 8)
    product, first = program(x, np.zeros((8, 0), np.float16))
    assert product.shape == (5, 0)
    assert (first == np.maximum(x, 0)).all()


def test_the_page_and_the_explanation_show_what_comes_first() -> None:
    function, specs = CASES["weights dequantised"]
    stages = oc.compile(function, *specs).stages
    (note,) = oc.explain(stages, {})
    assert note.operators == ("cast", "mul", "matmul")
    assert note.schedule.startswith("what is multiplied, by vector cores")
    assert "first" in str(stages.fused)
    assert "Cast" in oc.compiled_page(stages, {})


def test_the_explanation_names_the_cores_that_are_launched(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # The product's own blocks were named: vector cores that come first may need more.
    launched: list[int] = []
    real = NativeKernel.launch

    def launch(self: NativeKernel, arguments: Any, block_dim: int) -> None:
        launched.append(block_dim)
        real(self, arguments, block_dim)

    monkeypatch.setattr(NativeKernel, "launch", launch)
    for function, specs in CASES.values():
        program = oc.compile(function, *specs)
        launched.clear()
        program(*oc.random_arrays(program.graph, {}))
        explained = [note.cores for note in oc.explain(program.stages, {}) if note.kind != "view"]
        assert explained == launched


def test_operators_that_are_asked_to_be_apart_are_kernels_of_their_own() -> None:
    function, specs = CASES["weights dequantised"]
    choices = oc.Choices(fusion="none")
    groups = oc.compile(function, *specs, choices=choices).lowered.groups
    assert [group.kind for group in groups] == ["vector", "vector", "matmul"]
