"""Transposes that meet behind what does not mind them, and slices cut where they are joined."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from opkit import compiler as oc
from opkit.compiler import TensorSpec as Spec
from opkit.compiler.passes.sinking import join_slices, movements, sink_casts, sink_transposes

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


def taps(x: Any, b: Any) -> Any:
    """Three places of each row, and three of each column, of an image in a frame."""
    widths = ((0, 0), (0, 0), (1, 2), (2, 1))
    y = x.apply("pad", widths=widths, value=-1.5)
    for axis, count in ((3, 4), (2, 3)):
        axis += y.ndim - 4
        parts = [
            y.apply("slice", axis=axis, start=at, stop=at + 2 * count - 1, step=2)
            for at in range(2)
        ]
        parts = [each.reshape(2, 3, 1, *each.shape[2:]) for each in parts]
        y = y.builder.apply("concat", *parts, axis=2)
    return y


def test_what_lies_around_a_tensor_is_written_by_the_kernel_that_cuts_it() -> None:
    graph = traced(taps)
    joined = oc.simplify(join_slices(graph))
    operators = [node.operator for node in joined.nodes if node.operator != "reshape"]
    assert operators == ["concat_slices", "concat_slices"]
    fused = oc.prepare(graph)
    kinds = [group.kind for group in fused.groups if group.kind != "view"]
    assert kinds == ["concat_slices", "concat_slices"]
    given = dict(zip("xb", oc.random_arrays(graph, {}), strict=True))
    np.testing.assert_array_equal(result(joined, given), result(graph, given))
    y = np.pad(given["x"], ((0, 0), (0, 0), (1, 2), (2, 1)), constant_values=-1.5)
    y = np.stack([y[:, :, :, at : at + 7 : 2] for at in range(2)], axis=2)
    y = np.stack([y[:, :, :, at : at + 5 : 2] for at in range(2)], axis=2)
    np.testing.assert_array_equal(result(graph, given), y)


def test_parts_of_tensors_in_different_frames_stay_apart() -> None:
    def program(x: Any, b: Any) -> Any:
        frames = (x.apply("pad", widths=((0, 0),) * 3 + ((1, 0),), value=v) for v in (0.0, 1.0))
        parts = [y.apply("slice", axis=3, start=0, stop=4, step=1) for y in frames]
        return x.builder.apply("concat", *parts, axis=3)

    graph = traced(program)
    joined = join_slices(graph)
    assert [node.operator for node in joined.nodes].count("pad") == 2
    given = dict(zip("xb", oc.random_arrays(graph, {}), strict=True))
    np.testing.assert_array_equal(result(joined, given), result(graph, given))


def rounded_sum(x: Any) -> Any:
    return x.astype("float32").sum(axis=-1).astype("float16")


@pytest.mark.parametrize("shape", [(40, 96), (7, 5)])
def test_a_rounded_sum_without_its_axis_is_one_kernel(shape: tuple[int, ...]) -> None:
    # It was two: the sum in float32, whose axis was dropped in memory, and the cast.
    program = oc.compile(rounded_sum, Spec("x", shape, "float16"))
    assert [group.kind for group in program.lowered.groups] == ["vector", "view"]
    (x,) = oc.random_arrays(program.graph, {})
    np.testing.assert_array_equal(program(x), x.astype(np.float32).sum(axis=-1).astype(np.float16))


def test_a_cast_stays_where_its_move_would_not_help() -> None:
    def widened(x: Any) -> Any:
        return (x * 2.0).reshape(96, 40).astype("float32")

    def read_twice(x: Any) -> Any:
        wide = x.astype("float32").sum(axis=-1)
        return wide, wide.astype("float16")

    def of_an_input(x: Any) -> Any:
        return x.reshape(96, 40).astype("int8")

    def of_a_product(x: Any) -> Any:
        return x.apply("matmul", x.transpose(1, 0), dtype="float32").reshape(1600).astype("float16")

    for program in (widened, read_twice, of_an_input, of_a_product):
        graph = oc.expand(oc.trace(program, [Spec("x", (40, 96), "float16")]))
        assert sink_casts(graph) == graph
