"""Random formulas: equal forms give what is written, and gradients what differentiation gives."""

from __future__ import annotations

import random

import numpy as np
import pytest

from opkit import compiler as oc

ROWS, COLUMNS = oc.dimension("M"), oc.dimension("N")
INPUTS = [
    oc.TensorSpec("x", (ROWS, COLUMNS)),
    oc.TensorSpec("w", (COLUMNS,)),
    oc.TensorSpec("r", (ROWS, 1)),
]
SCALE = [oc.Attribute("s")]
FUNCTIONS = (
    *("exp", "log", "sqrt", "abs", "tanh", "sigmoid", "softplus", "relu", "expm1", "log1p"),
    *("sinh", "cosh", "asinh", "sin", "erf", "erfc", "square", "sign", "floor", "gelu", "silu"),
    *("mish", "rsqrt", "log2"),
)


def formula(draw: random.Random, depth: int) -> str:
    """Return a formula over x, w, r and s."""
    if depth == 0:
        return draw.choice(["x", "x", "w", "r", "s", "2", "0.5", "1", "3"])
    parts = [formula(draw, depth - 1) for _ in range(4)]
    kind = draw.randrange(10)
    if kind < 4:
        return f"({parts[0]} {draw.choice('+-*/')} {parts[1]})"
    if kind < 7:
        return f"{draw.choice(FUNCTIONS)}({parts[0]})"
    if kind == 7:
        return f"{draw.choice(['max', 'min'])}({parts[0]}, {parts[1]})"
    if kind == 8:
        sign = draw.choice(["<", ">", "<=", "=="])
        return f"where({parts[0]} {sign} {parts[1]}, {parts[2]}, {parts[3]})"
    exponent = draw.choice(["2", "3", "-1", "0.5", "4"])
    return draw.choice(
        [
            *(f"({parts[0]})**{exponent}", f"mean({parts[0]}*x, axis=-1)"),
            *(f"sum(x*{parts[0]}, axis=0)", f"max(x*{parts[0]}, axis=-1)"),
        ]
    )


def graph_of(text: str, inputs: list[oc.TensorSpec] = INPUTS) -> oc.Graph | None:
    """Return a formula's graph; None for what is a number or divides numbers by 0."""
    try:
        return oc.formula_graph("random", inputs, [oc.FormulaOutput("y", text)], SCALE)
    except oc.GraphError:
        return None


def value(graph: oc.Graph, arrays: dict[str, np.ndarray]) -> np.ndarray:
    with np.errstate(all="ignore"):
        found = oc.run_graph(graph, arrays, {"s": 1.3})
    return np.asarray(found[graph.outputs[0][1]])


def lowered(graph: oc.Graph) -> oc.Graph:
    return oc.simplify(oc.expand(oc.in_equal_form(graph), fractions_only=True))


def arrays(numbers: np.random.Generator) -> dict[str, np.ndarray]:
    return {
        "x": numbers.uniform(-2, 2, (3, 4)),
        "w": numbers.uniform(-2, 2, 4),
        "r": numbers.uniform(0.2, 2, (3, 1)),
    }


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_equal_forms_of_random_formulas_are_equal(seed: int) -> None:
    draw, numbers = random.Random(seed), np.random.default_rng(seed)
    tried = 0
    while tried < 60:
        text = formula(draw, draw.choice([2, 3, 4]))
        graph = graph_of(text)
        if graph is None:
            continue
        tried += 1
        given = arrays(numbers)
        expected, found = value(graph, given), value(lowered(graph), given)
        assert found.shape == expected.shape, text
        # Where a huge number cancels, float64 keeps no digit of what is left.
        near = np.isclose(found, expected, rtol=2e-5, atol=2e-6) | (np.abs(expected) > 1e12)
        assert np.all(near | (np.isnan(found) & np.isnan(expected))), text


@pytest.mark.parametrize("seed", [4, 5, 6])
def test_gradients_of_random_formulas_are_those_without_equal_forms(seed: int) -> None:
    draw, numbers = random.Random(seed), np.random.default_rng(seed)
    tried = 0
    while tried < 40:
        text, wanted = formula(draw, draw.choice([2, 3])), draw.choice("xwr")
        graph = graph_of(text)
        if graph is None:
            continue
        tried += 1
        given = arrays(numbers)
        shape = graph.output_tensors[0][1].shape
        seeded = [oc.TensorSpec("g", shape), *INPUTS]
        better = graph_of(f"gradient({text}, g, {wanted})", seeded)
        assert better is not None, text
        plain = oc.gradient(graph, [wanted])
        g = numbers.uniform(-1, 1, value(graph, given).shape)
        expected = value(plain, {plain.inputs[0].name: g, **given})
        found = value(lowered(better), {"g": g, **given})
        assert found.shape == expected.shape, text
        near = np.isclose(found, expected, rtol=1e-4, atol=1e-5)
        assert np.all(near | ~np.isfinite(expected) | (np.abs(expected) > 1e8)), text
