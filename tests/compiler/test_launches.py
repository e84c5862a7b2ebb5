"""Launches as values: worked out without memory and without a compiler."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from opkit import compiler as oc
from opkit.chips import find_chip
from opkit.compiler.codegen import pack_tiling

CHIP = find_chip("Ascend910B2")
M = oc.dimension("M")


def specs(*rows: tuple[str, tuple[Any, ...], str]) -> tuple[oc.TensorSpec, ...]:
    return tuple(oc.TensorSpec(*row) for row in rows)


def compiled(function: Callable[..., Any], *inputs: oc.TensorSpec) -> oc.Compiled:
    return oc.compile(oc.trace(function, inputs, name="launched"))


X = ("x", (M, 64), "float16")
KINDS: dict[str, tuple[Callable[..., Any], tuple[oc.TensorSpec, ...]]] = {
    "vector": (lambda x: x.apply("gelu"), specs(X)),
    "matmul": (lambda x, w: x @ w, specs(X, ("w", (64, 32), "float16"))),
    "matmul and what follows": (
        lambda x, w: (x @ w).apply("gelu"),
        specs(X, ("w", (64, 32), "float16")),
    ),
    "matmul and what comes first": (
        lambda x, w: x.apply("gelu") @ w,
        specs(X, ("w", (64, 32), "float16")),
    ),
    "attention": (
        lambda q, k: q.apply("attention", k, k, scale=None, causal=False),
        specs(("q", (2, M, 64), "float16"), ("k", (2, 128, 64), "float16")),
    ),
    "transpose": (lambda x: x.transpose(1, 0), specs(X)),
    "slice": (lambda x: x[3:], specs(X)),
    "concat": (lambda x: x.builder.apply("concat", x, x, axis=0), specs(X)),
    "take": (lambda x, i: x.apply("take", i, axis=0), specs(X, ("i", (9,), "int32"))),
    "sort": (lambda x: x.apply("sort"), specs(X)),
    "argmax": (lambda x: x.apply("argmax"), specs(X)),
    "take_along": (
        lambda x, i: x.apply("take_along", i, axis=1),
        specs(X, ("i", (M, 9), "int32")),
    ),
    "put_along": (
        lambda x, i, s: x.apply("put_along", i, s, axis=1),
        specs(X, ("i", (M, 9), "int32"), ("s", (M, 9), "float16")),
    ),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_launch_names_its_operands(kind: str) -> None:
    function, inputs = KINDS[kind]
    program = compiled(function, *inputs)
    launches = list(program.launches({"M": 40}))
    tensors = program.lowered.graph.tensors
    named = [a.name for each in launches for a in each.arguments if hasattr(a, "name")]
    read = {t.name for t in program.lowered.graph.inputs}
    written = {
        name
        for group in program.lowered.groups
        for name in program.lowered.results_of(group)
        if group.kind != "view"
    }
    assert launches and all(each.block_dim >= 1 for each in launches)
    assert set(named) <= set(tensors) and read | written <= set(named)
    # The value says everything: it is the same twice, and its text has the entry point.
    assert launches == list(program.launches({"M": 40}))
    assert all(f" {each.code.name}(" in each.code.text() for each in launches)


def test_nothing_is_launched_where_nothing_is_written() -> None:
    program = compiled(lambda x: x.apply("exp").transpose(1, 0), *specs(X))
    assert list(program.launches({"M": 0})) == []


def test_workspace_of_a_launch_is_part_of_its_value() -> None:
    program = compiled(lambda x: x.apply("argmax"), *specs(("x", (1, 200000), "float32")))
    (launch,) = program.launches({})
    (room,) = (each for each in launch.arguments if isinstance(each, oc.Room))
    assert room.size_bytes == 32 * launch.block_dim


def test_what_broadcasts_along_some_batches_says_how_it_is_laid_out() -> None:
    program = compiled(
        lambda a, b: a @ b, *specs(("a", (2, 3, 16, 16), "float16"), ("b", (3, 16, 16), "float16"))
    )
    (launch,) = program.launches({})
    spreads = {a.name: a.spread for a in launch.arguments if isinstance(a, oc.TensorArgument)}
    assert spreads["a"] is None and spreads["b"] is not None
    assert spreads["b"].shape == (2, 3, 16, 16)


@pytest.mark.parametrize("kind", ["matmul", "matmul and what follows"])
@pytest.mark.parametrize("rows", [1, 40, 3000])
def test_a_products_host_code_launches_as_python_does(kind: str, rows: int) -> None:
    function, inputs = KINDS[kind]
    program = compiled(function, *inputs)
    (launch,) = program.launches({"M": rows})
    (group,) = program.lowered.groups
    (kernel,) = oc.operator_kernels(program.stages, group)
    assert isinstance(kernel, oc.HostedKernel)

    def extent_of(extent: oc.Dimension) -> int:
        return extent if isinstance(extent, int) else int(extent.subs({M: rows}))

    used, values = kernel.launch(CHIP.count("cores.aic"), extent_of, {})
    data = launch.arguments[-1]
    assert isinstance(data, bytes)
    assert (used, pack_tiling(values)) == (launch.block_dim, data)
    assert any(value.value for value in values)
