"""Arithmetic that costs less, up to rounding."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from opkit import compiler as oc
from opkit.chips import find_chip

X = oc.TensorSpec("x", (4, 64), "float32")


def simple(function: Any) -> oc.Graph:
    return oc.simplify(oc.expand(oc.trace(function, [X])))


def squares(graph: oc.Graph) -> int:
    return sum(n.operator == "mul" and len(set(n.inputs)) == 1 for n in graph.nodes)


@pytest.mark.parametrize("factor", [0.044715, -3.0])
def test_a_square_that_is_scaled_reads_no_place_twice(factor: float) -> None:
    """It took the vector unit two cycles a repeat: both sources lie in one group of banks."""
    graph = simple(lambda x: x * x * factor)
    assert squares(graph) == 0
    x = np.linspace(-3, 3, 256, dtype=np.float32).reshape(4, 64)
    np.testing.assert_allclose(
        oc.compile(lambda x: x * x * factor, X)(x), x * x * factor, rtol=1e-6
    )


def test_a_square_that_others_read_stays_one() -> None:
    assert squares(simple(lambda x: (x * x * 2.0, x * x + 1.0))) == 1


def test_equal_reductions_are_one_however_their_axis_was_named() -> None:
    """The last axis was -1 in one and 1 in the other: the same sum was computed twice."""
    graph = simple(lambda x: (x.mean(axis=-1, keepdims=True), x.sum(axis=1)))
    first = [n for n in graph.nodes if n.operator == "sum" and n.inputs == ("x",)]
    assert len(first) == 1


def test_work_behind_a_reduction_without_kept_axes_is_in_its_kernel() -> None:
    # The change of shape between them made each a kernel of its own: four launches of a mean.
    def scaled(x: Any) -> Any:
        return (x.astype("float32").mean(axis=0) * 2.0).astype("float16")

    graph = oc.trace(scaled, [oc.TensorSpec("x", (300, 1000), "float16")])
    stages = oc.compile_stages(graph, find_chip("Ascend910B2"))
    kinds = [group.kind for group in stages.fused.groups]
    assert kinds.count("vector") == 2, str(stages.fused)
    whole = oc.trace(lambda x: x.sum().apply("sqrt"), [oc.TensorSpec("x", (40, 7), "float32")])
    fused = oc.compile_stages(whole, find_chip("Ascend910B2")).fused
    assert [group.kind for group in fused.groups].count("vector") == 1, str(fused)


def test_a_cast_of_an_input_in_another_shape_joins_what_reads_it() -> None:
    # It was a launch for the few numbers of a weight.
    def weighted(x: Any, weight: Any) -> Any:
        return x * weight.astype("float32").reshape(1, 3, 1)

    specs = [oc.TensorSpec("x", (4, 3, 50), "float32"), oc.TensorSpec("weight", (3,), "float16")]
    fused = oc.compile_stages(oc.trace(weighted, specs), find_chip("Ascend910B2")).fused
    assert [group.kind for group in fused.groups].count("vector") == 1, str(fused)


def test_a_value_that_is_read_in_both_shapes_keeps_its_kernel() -> None:
    def both(x: Any) -> tuple[Any, Any]:
        total = x.sum(axis=1)
        return total, total * 3.0

    graph = oc.trace(both, [oc.TensorSpec("x", (5, 40), "float32")])
    given = np.arange(200, dtype=np.float32).reshape(5, 40)
    simplified = oc.simplify(oc.expand(graph))
    values = oc.run_graph(simplified, {"x": given})
    first, second = (values[name] for _, name in simplified.outputs)
    np.testing.assert_allclose(first, given.sum(1))
    np.testing.assert_allclose(second, given.sum(1) * 3)
