"""Transposes that meet behind what does not mind them, and slices cut where they are joined."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from opkit import compiler as oc
from opkit.compiler import TensorSpec as Spec
from opkit.compiler.passes.sinking import join_slices, movements, sink_transposes

SHAPE = (2, 3, 4, 8)


def last(x: Any) -> Any:
    return x.transpose(0, 2, 3, 1)


def first(x: Any) -> Any:
    return x.transpose(0, 3, 1, 2)


def channels(x: Any, b: Any) -> Any:
    return last((first(x) * 2.0 + b.reshape(1, 8, 1, 1)).apply("maximum", 0.0))


def residual(x: Any, b: Any) -> Any:
    y = first(x)
    return last((y + first(x * b)).apply("maximum", 0.0) * y)


def framed(x: Any, b: Any) -> Any:
    y = first(x).apply("pad", widths=((0, 0), (0, 1), (1, 1), (2, 0)), value=1.5)
    return last(y.apply("slice", axis=3, start=1, stop=6, step=2))


def reduced(x: Any, b: Any) -> Any:
    return first(x).sum(axis=(2, 3)) * b


def side_by_side(x: Any, b: Any) -> Any:
    y = first(x)
    return last(y.builder.apply("concat", y, y * 2.0, axis=2))


PROGRAMS = {
    "channels": (channels, 0),
    "a residual": (residual, 0),
    "a frame and steps": (framed, 2),
    "a mean": (reduced, 0),
    "side by side": (side_by_side, 1),
}


def traced(program: Any) -> Any:
    return oc.trace(program, [Spec("x", (2, 3, 4, 8), "float32"), Spec("b", (8,), "float32")])


def result(graph: Any, given: Any) -> Any:
    ((_, name),) = graph.outputs
    return oc.run_graph(graph, given)[name]


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_is_the_same_with_fewer_movements(name: str) -> None:
    program, count = PROGRAMS[name]
    graph = oc.simplify(oc.expand(traced(program)))
    sunk = oc.simplify(sink_transposes(graph))
    assert movements(sunk) == count < movements(graph)
    given = dict(zip("xb", oc.random_arrays(graph, {}), strict=True))
    np.testing.assert_allclose(result(sunk, given), result(graph, given), rtol=1e-6)


def test_what_would_need_as_many_movements_stays() -> None:
    def program(x: Any, b: Any) -> Any:
        return first(x) * 2.0

    assert [group.kind for group in oc.prepare(traced(program)).groups].count("transpose") == 1


def test_slices_are_cut_by_the_kernel_that_joins_them() -> None:
    def program(x: Any, b: Any) -> Any:
        left = x.apply("slice", axis=3, start=0, stop=3, step=1)
        right = x.apply("slice", axis=3, start=3, stop=8, step=2)
        return x.builder.apply("concat", right, left, x, axis=3)

    graph = traced(program)
    joined = join_slices(graph)
    fused = oc.prepare(graph)
    assert [group.kind for group in fused.groups] == ["concat_slices"]
    x = np.arange(192, dtype=np.float32).reshape(SHAPE)
    given = {"x": x, "b": np.zeros(8, np.float32)}
    np.testing.assert_array_equal(
        result(joined, given), np.concatenate([x[..., 3::2], x[..., :3], x], 3)
    )
