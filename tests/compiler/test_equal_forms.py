"""Formulas' graphs in the equal forms that are computed: which operators, of which shapes."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest

from opkit import compiler as oc

ROWS, COLUMNS = oc.dimension("M"), oc.dimension("N")
X = oc.TensorSpec("x", (ROWS, COLUMNS))
HALF = oc.TensorSpec("h", (ROWS, COLUMNS), "float16")
V = oc.TensorSpec("v", (ROWS, 1))
R = oc.TensorSpec("r", (ROWS, 1))
W = oc.TensorSpec("w", (COLUMNS,))
WHOLE = oc.TensorSpec("i", (ROWS, COLUMNS), "int32")
SCALE = oc.Attribute("scale")


def formed(text: str, *inputs: oc.TensorSpec, dtype: str = "float32", **more: bool) -> oc.Graph:
    outputs = [oc.FormulaOutput("y", text, dtype)]
    return oc.in_equal_form(oc.formula_graph("formed", inputs, outputs, [SCALE]), **more)


def simple(text: str, *inputs: oc.TensorSpec, **more: bool) -> oc.Graph:
    return oc.simplify(oc.expand(formed(text, *inputs, **more), fractions_only=True))


def operators(graph: oc.Graph) -> list[str]:
    sources = ("constant", "attribute", "extent")
    return [node.operator for node in graph.nodes if node.operator not in sources]


def whole(graph: oc.Graph) -> int:
    """Return how many operators have a result of all elements."""
    return sum(node.output.shape == (ROWS, COLUMNS) for node in graph.nodes)


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("0.5*(4*x*0.25)", 1),
        ("x/3/7", 1),
        ("2*(x*r)*v*scale", 1),
        ("x + r + v + 2 + scale", 1),
        ("x/r/v", 1),
        ("r*x*v*w", 2),
        ("x - v - w - r", 2),
        ("exp(0.5*scale*x*r)*v", 3),
    ],
)
def test_numbers_and_single_elements_of_rows_meet_before_the_rows(text: str, count: int) -> None:
    graph = simple(text, X, V, R, W)
    assert whole(graph) == count, operators(graph)


def test_numbers_gather_as_far_as_float32_holds_them() -> None:
    scaled = simple("x*1e30*1e30*1e-30*1e-30*1e-30", X)
    numbers = [float(n.settings["value"]) for n in scaled.nodes if n.operator == "constant"]  # type: ignore[arg-type]
    assert numbers == [pytest.approx(1e-30)]
    # 0 * 1e60 is 0, but 0 times what float32 makes of 1e60 is no number.
    graph = simple("x*1e30*1e30", X)
    assert operators(graph) == ["mul", "mul"]
    found = oc.run_graph(graph, {"x": np.zeros((1, 2))})
    np.testing.assert_array_equal(found[graph.outputs[0][1]], np.zeros((1, 2)))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1 + tanh(x)", ["mul", "exp", "add", "div"]),
        ("abs(1 + tanh(x))/8", ["mul", "exp", "add", "div", "abs", "mul"]),
        ("x*(1 + tanh(x))", ["mul", "mul", "exp", "add", "div"]),
        ("x*sigmoid(x)", ["mul", "exp", "add", "div"]),
        ("x**4 + 2*x**2 + 3", ["mul", "add", "mul", "add"]),
        ("2**x", ["mul", "exp"]),
        ("x*x*x*x + 2*x*x + 3", ["mul", "add", "mul", "add"]),
        ("x + 0", ["add"]),
        ("x - 0", []),
    ],
)
def test_cheaper_forms(text: str, expected: list[str]) -> None:
    assert Counter(operators(simple(text, X))) == Counter(expected)


def test_what_algebra_does_not_know_stays_what_it_is() -> None:
    text = "erf(sin(x)) + cumsum(x, axis=1) + atan2(x, w) + var(x, axis=0)"
    text += " + softmax(x, axis=-1) + where(i > 2 and x > 0, cast(i & 3, 'float32'), x % 3)"
    array = np.random.default_rng(0).normal(size=(4, 6))
    arrays = {"x": array, "w": array[0], "i": np.arange(24).reshape(4, 6) % 5}
    plain = oc.formula_graph("plain", [X, W, WHOLE], [oc.FormulaOutput("y", text)])
    other = formed(text, X, W, WHOLE)
    values = [oc.run_graph(graph, arrays)[graph.outputs[0][1]] for graph in (plain, other)]
    np.testing.assert_allclose(*values, rtol=1e-12)


def test_operators_of_numbers_alone_and_of_nothing_stay() -> None:
    assert operators(formed("x + sin(x**0)", X)) == ["sin", "add"]
    places = oc.TensorSpec("i", (ROWS,), "int32")
    taken = formed("gradient(take(v, i, axis=0), r, v)", V, R, places)
    assert "arange" in [node.operator for node in taken.nodes]


def test_an_output_keeps_its_shape_where_a_value_no_longer_reaches_it() -> None:
    assert formed("sum(where(x > 0, w, w), axis=0)", X, W).output_tensors[0][1].shape == (COLUMNS,)
    fast = formed("r + x - x", X, R, fast_math=True)
    assert fast.output_tensors[0][1].shape == (ROWS, COLUMNS)
    slow = formed("r + x - x", X, R)
    assert Counter(operators(slow)) == {"add": 1, "sub": 1}


def test_halves_are_computed_in_float32_and_rounded_once() -> None:
    graph = formed("(1 + tanh(h))*h", HALF, dtype="float16")
    computed = {n.output.dtype for n in graph.nodes if n.operator not in ("cast", "constant")}
    assert computed == {"float32"}
    assert operators(graph).count("cast") == 2


def test_comments_say_the_maths() -> None:
    graph = formed("h*(1 + tanh(h))", HALF)
    assert str(graph.nodes[-1].location) == "2*h*sigmoid(2*h)"


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("text", "at", "expected"),
    [
        ("log(1 + exp(x))", 500.0, 500.0),
        ("log(1 + exp(x))", -80.0, np.exp(-80.0)),
        ("1 - sigmoid(x)", 60.0, np.exp(-60.0)),
        ("1 - tanh(x)**2", 30.0, 4 * np.exp(-60.0)),
        ("(exp(x) - exp(-x))/(exp(x) + exp(-x))", 300.0, 1.0),
        ("log(x + sqrt(x**2 + 1))", -1e20, -np.arcsinh(1e20)),
        ("log(cosh(x))", 200.0, 200.0 - np.log(2)),
        ("log(1 + x)", 1e-20, 1e-20),
        ("sqrt(1 + x) - 1", 1e-12, 5e-13),
        ("1 + erf(x)", -3.0, math.erfc(3.0)),
        ("1 - erf(x)", 5.0, math.erfc(5.0)),
        ("gelu(x)", -5.0, -2.5 * math.erfc(5.0 * math.sqrt(0.5))),
        ("0.5*x*(1 + erf(x*0.7071067811865476))", -5.0, -2.5 * math.erfc(5.0 * math.sqrt(0.5))),
    ],
)
def test_equal_forms_hold_at_large_and_small_numbers_on_the_device(
    text: str, at: float, expected: float
) -> None:
    kernel = oc.compile(formed(text, X))
    found = kernel(np.full((2, 40), at, np.float32))
    np.testing.assert_allclose(found, np.full((2, 40), expected), rtol=1e-5)


def test_outputs_that_are_inputs_or_one_another_are_copied() -> None:
    outputs = [
        oc.FormulaOutput(name, text, "float16")
        for name, text in (("a", "h"), ("b", "h"), ("c", "-h"), ("d", "0 - h*1"), ("e", "-h"))
    ]
    graph = oc.in_equal_form(oc.formula_graph("copies", [HALF], outputs))
    array = np.array([[np.nan, np.inf, -0.0, 0.0, 1.5, -2.0]] * 3, np.float16)
    assert len({tensor for _, tensor in oc.simplify(oc.expand(graph)).outputs}) < 5
    graph = oc.with_own_outputs(graph)
    assert len({tensor for _, tensor in oc.simplify(oc.expand(graph)).outputs}) == 5
    found = oc.compile(graph)(array)
    for value, expected in zip(found, (array, array, -array, 0 - array, -array), strict=True):
        np.testing.assert_array_equal(value, expected)
        np.testing.assert_array_equal(np.signbit(value[:, 2:]), np.signbit(expected[:, 2:]))
    assert oc.with_own_outputs(formed("-x", X)).nodes == formed("-x", X).nodes


def test_an_output_that_is_an_input_in_another_shape_is_a_copy_of_it() -> None:
    texts = (("a", "reshape(h, (-1,))"), ("b", "reshape(h, (1, -1))"), ("c", "h"))
    outputs = [oc.FormulaOutput(name, text, "float16") for name, text in texts]
    graph = oc.with_own_outputs(oc.formula_graph("shapes", [HALF], outputs))
    array = np.array([[np.nan, np.inf, -0.0, 0.0, 1.5, -2.0]] * 3, np.float16)
    for value, shape in zip(oc.compile(graph)(array), ((18,), (1, 18), (3, 6)), strict=True):
        np.testing.assert_array_equal(value, array.reshape(shape))


def test_a_power_whose_exponent_comes_with_the_launch_is_numpys() -> None:
    kernel = oc.compile(formed("x**scale", X))
    x = np.array([[-2.0, -0.5, 0.0, 0.25, 3.0, 1e10, np.inf, np.nan]] * 2, np.float32)
    for scale in (0.0, 1.0, 2.0, 3.0, -1.0, -2.0, 0.5, 2.5):
        with np.errstate(all="ignore"):
            expected = np.power(x.astype(np.float64), scale).astype(np.float32)
        np.testing.assert_allclose(kernel(x, scale=scale), expected, rtol=1e-5)


def test_the_reference_of_gelu_loses_no_digits_below_zero() -> None:
    x = np.array([-20.0, -9.0, -1e-18])
    exact = [0.5 * each * math.erfc(-each * math.sqrt(0.5)) for each in x]
    found = oc.evaluate_formulas({"y": "gelu(x)"}, {"x": x})
    np.testing.assert_allclose(found, exact, rtol=1e-14)
    slow = oc.evaluate_formulas({"y": "gelu(x, approximate='tanh')"}, {"x": x})
    assert slow[0] == pytest.approx(-3.375e-261, rel=1e-3)
