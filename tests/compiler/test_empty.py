"""Axes without elements, and axes that are shorter than what is taken of them."""

from __future__ import annotations

import numpy as np
import pytest

import opkit.compiler as oc
from opkit.errors import UsageError


def graph_of(text: str, *shape: oc.Dimension) -> oc.Graph:
    shape = shape or (oc.dimension("M"), oc.dimension("N"))
    inputs = [oc.TensorSpec("x", shape, "float32")]
    return oc.formula_graph("op", inputs, [oc.FormulaOutput("y", text)])


@pytest.mark.parametrize(
    ("text", "least"),
    [
        ("x[0]", {"M": 1}),
        ("x[-1]", {"M": 1}),
        ("x[1:]", {"M": 2}),
        ("x[:, :-1]", {"N": 2}),
        ("x @ x.T", {"N": 1}),
        ("x[:, ::2]", {}),
        ("exp(x)", {}),
    ],
)
def test_a_program_says_how_long_its_axes_must_be(text: str, least: dict[str, int]) -> None:
    limits = oc.size_limits(oc.expand(graph_of(text)))
    assert {limit.size: limit.least for limit in limits} == least


@pytest.mark.parametrize(
    "text", ["exp(x)", "softmax(x, axis=-1)", "x[:, ::2] * 2.0", "x.T", "-x @ x.T"]
)
def test_results_without_elements_need_no_kernel(text: str) -> None:
    x = np.zeros((0, 6), np.float32)
    wanted = oc.evaluate_formulas({"y": text}, {"x": x.astype(float)})
    assert oc.compile(graph_of(text))(x).shape == wanted.shape


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x[0] + 1.0", "M is 0, expected 1 or more"),
        ("x[-1] + 1.0", "M is 0, expected 1 or more"),
        ("exp(x[2:4])", "M is 0, expected 4 or more"),
        ("sum(x, axis=0)", r"sum of shape \[0, 6\] is made of no elements"),
        ("argmax(x, axis=0)", r"argmax of shape \[0, 6\] is made of no elements"),
    ],
)
def test_what_would_be_made_of_nothing_is_refused(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        oc.compile(graph_of(text))(np.zeros((0, 6), np.float32))


def test_a_fixed_axis_without_elements_is_said_at_its_line() -> None:
    with pytest.raises(oc.GraphError, match=r"of shape \[0, 6\] has no elements") as caught:
        oc.compile(graph_of("exp(x[4:])", 4, 6))
    assert "a name instead of the size 0" in str(caught.value.help)
