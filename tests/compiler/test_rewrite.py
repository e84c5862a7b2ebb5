"""Arithmetic that costs less, up to rounding."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from opkit import compiler as oc

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
