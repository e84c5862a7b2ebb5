"""Formulas over named axes, read into graphs and evaluated by NumPy."""

from __future__ import annotations

import math

import numpy as np
import pytest

from opkit import compiler as oc

M, N = oc.dimension("M"), oc.dimension("N")
INPUTS = [oc.TensorSpec("x", (M, N), "float16"), oc.TensorSpec("w", (N,), "float16")]
RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(3, 5))
W = RANDOM.normal(size=5)
_TANH = 0.5 * X * (1 + np.tanh(W)) + 2 * (1 - np.tanh(W))
WHOLE = RANDOM.integers(-9, 9, size=(3, 5))


def graph_of(text: str, dtype: str = "float16") -> oc.Graph:
    return oc.formula_graph("formula", INPUTS, [oc.FormulaOutput("y", text, dtype)])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x - mean(x, axis=0)", X - X.mean(0)),
        ("sum(x, axis=0) / M", X.mean(0)),
        ("max(x, axis=(0, 1)) + min(x)", X.max() + X.min()),
        ("var(x, axis=1, keepdims=True) * 2", X.var(1, keepdims=True) * 2),
        ("erf(x) + erfc(x)", np.ones((3, 5))),
        ("atan2(x, w) - sin(x) ** 2 - cos(x) ** 2 + 1", np.arctan2(X, W)),
        ("abs(x) ** w", np.abs(X) ** W),
        ("x if x > w and not x > 1 else w", np.where((X > W) & ~(X > 1), X, W)),
        ("concat(x, x[:, 0:2], axis=1)", np.concatenate([X, X[:, :2]], 1)),
        (
            "concat(chunk(x, 2, axis=1)[1], chunk(x, 2, axis=-1)[0], axis=1)",
            np.concatenate([X[:, 3:], X[:, :3]], 1),
        ),
        ("split(x, 2, 1)[1] + chunk(x, 3)[2][:, 0:2]", X[:, 2:4] + X[2:, :2]),
        ("x @ x.T", X @ X.T),
        ("softmax(x, axis=0)", np.exp(X) / np.exp(X).sum(0)),
        ("0.5 * x * (1 + tanh(w)) + (1 - tanh(w)) - (tanh(w) - 1)", _TANH),
        ("x * tanh(softplus(x))", X * np.tanh(np.log1p(np.exp(X)))),
        ("x * pi + log(e) - ln(e)", X * math.pi),
    ],
)
def test_a_formula_is_what_numpy_gives(text: str, expected: np.ndarray) -> None:
    # The size M of the arrays is a number here.
    text = text.replace("/ M", "/ 3")
    np.testing.assert_allclose(oc.evaluate_formulas({"y": text}, {"x": X, "w": W}), expected)


def test_whole_numbers_wrap_in_the_types_that_are_said() -> None:
    found = oc.evaluate_formulas(
        {"y": "(x * 16) & ~3 ^ 1", "q": "x // 4 + x % 4"},
        {"x": WHOLE.astype(np.int8)},
        dtypes={"x": "int8", "y": "int8", "q": "int8"},
    )
    narrow = WHOLE.astype(np.int8)
    np.testing.assert_array_equal(found[0], (narrow * np.int8(16)) & ~np.int8(3) ^ np.int8(1))
    np.testing.assert_array_equal(found[1], narrow // 4 + narrow % 4)


def test_places_without_their_axis_are_one_for_each_line() -> None:
    # They used to be refused: "indices have 1 axes, the tensor 2".
    places = np.array([4, 0, 2])
    found = oc.evaluate_formulas(
        {"y": "take_along(x, i, axis=-1) + i"}, {"x": X, "i": places}, dtypes={"i": "int64"}
    )
    np.testing.assert_allclose(found, X[np.arange(3), places] + places)


def test_a_value_of_int64_that_no_kernel_holds_is_an_error() -> None:
    with pytest.raises(ValueError, match="i holds 4294967296, which int32"):
        oc.evaluate_formulas({"y": "i + 1"}, {"i": np.array([1 << 32])}, dtypes={"i": "int64"})


def test_places_are_limited_through_what_chooses_among_them() -> None:
    # Cases of such formulas named places that are not there.
    specs = [INPUTS[0], oc.TensorSpec("i", (M, 1), "int32")]
    text = "take_along(x, where(i == 7, 0, i), axis=-1)"
    graph = oc.formula_graph("formula", specs, [oc.FormulaOutput("y", text, "float16")])
    assert oc.index_limits(graph) == {"i": N}


def test_an_attribute_and_a_size_are_values() -> None:
    attributes = [oc.Attribute("scale", "float", 2.0)]
    outputs = [oc.FormulaOutput("y", "x * scale + N", "float32")]
    graph = oc.formula_graph("formula", INPUTS, outputs, attributes)
    found = oc.run_graph(graph, {"x": X, "w": W}, {"scale": 3.0})
    np.testing.assert_allclose(found[graph.outputs[0][1]], X * 3 + 5)


def test_what_joins_without_elements_has_a_gradient_without_elements() -> None:
    arrays = {"x": np.zeros((1, 0)), "z": np.ones((1, 3)), "g": np.ones((1, 3))}
    text = "gradient(concat(x, z * 2, axis=1), g, {})"
    assert oc.evaluate_formulas({"y": text.format("x")}, arrays).shape == (1, 0)
    padded = "gradient(pad(x, ((0, 0), (1, 2))), g, x)"
    assert oc.evaluate_formulas({"y": padded}, arrays).shape == (1, 0)
    np.testing.assert_array_equal(
        oc.evaluate_formulas({"y": text.format("z")}, arrays), np.full((1, 3), 2.0)
    )


def test_references_are_the_text_as_written_unless_they_may_be_simplified() -> None:
    x = np.array([-4.0, 9.0])
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(
            oc.evaluate_formulas({"y": "sqrt(x)*sqrt(x)"}, {"x": x}), np.sqrt(x) * np.sqrt(x)
        )
    fast = oc.evaluate_formulas({"y": "sqrt(x)*sqrt(x)"}, {"x": x}, fast_math=True)
    np.testing.assert_array_equal(fast, x)


def test_halves_are_computed_in_single_precision() -> None:
    graph = graph_of("sum(x * x, axis=0)")
    computed = {n.output.dtype for n in graph.nodes if n.operator in ("mul", "sum")}
    assert computed == {"float32"}
    assert graph.tensors[graph.outputs[0][1]].dtype == "float16"


def test_gradient_is_that_of_the_formula_in_the_inputs_own_shape() -> None:
    seed = RANDOM.normal(size=(3, 5))
    text = "gradient(x * exp(w), g, w)"
    found = oc.evaluate_formulas({"y": text}, {"x": X, "w": W, "g": seed})
    np.testing.assert_allclose(found, (seed * X * np.exp(W)).sum(0))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("foo(x)", 'column 1: "foo(x)" calls no operator of the compiler'),
        ("x + v", 'column 5: "v" is no input, attribute or size'),
        ("x @", "is not a formula"),
        ("x.sum()", 'column 1: "x.sum()" is not part of the formula language'),
        ("sum(x, axis=2)", "axis is 2, expected an axis from -2 to 1"),
        ("x + x.T", "do not broadcast"),
        ("1 + 2", "is a number, the same for every element"),
        ("x ** 'a'", "is not part of the formula language"),
        ("[x for x in w]", "is not part of the formula language"),
        ("sum(x, axis=w)", '"w" must be a number here'),
        ("gradient(x, w)", "takes a formula, its gradient and the name of an input"),
        ("x < w < x", "is not part of the formula language"),
        ("__import__('os')", "calls no operator of the compiler"),
    ],
)
def test_what_is_wrong_is_said_with_its_column(text: str, message: str) -> None:
    with pytest.raises(oc.GraphError) as caught:
        graph_of(text)
    assert message in caught.value.message


def test_a_misspelt_name_gets_the_nearest_one() -> None:
    with pytest.raises(oc.GraphError, match="softmax"):
        graph_of("sofmax(x)")


@pytest.mark.parametrize("text", ["(" * 300 + "x" + ")" * 300, "-" * 5000 + "x", "x+" * 6000])
def test_an_extreme_formula_is_an_error_and_no_crash(text: str) -> None:
    with pytest.raises(oc.GraphError):
        graph_of(text)


def test_a_main_shape_gives_every_input_its_own() -> None:
    assert oc.shapes_at({"x": ("...", "C"), "w": ("C",)}, (2, 3, 17)) == {
        "x": (2, 3, 17),
        "w": (17,),
    }
    assert oc.shapes_at({"x": ("M", "N"), "b": ("M", 1)}, (2, 3, 17)) == {
        "x": (6, 17),
        "b": (6, 1),
    }
    assert oc.shapes_at({"x": ("M", "N", 4)}, (5,)) == {"x": (1, 5, 4)}
    # A name that an input has twice is a square, not the square of all elements.
    assert oc.shapes_at({"x": ("S", "S")}, (256, 4096)) == {"x": (2048, 2048)}
    images = {"x": ("B", 10, 12, 8), "w": (72, 16)}
    assert oc.shapes_at(images, (5, 9))["x"][0] == 45
    assert oc.shapes_at(images, (256, 4096))["x"][0] == 2**20 // 960
    assert oc.shapes_at({"x": ("S", "S")}, (256, 4096), sizes={"S": 3000}) == {"x": (3000, 3000)}
    assert oc.shapes_at({"x": ("N",)}, (256, 4096), squares=[("N", "N")]) == {"x": (2048,)}
    assert oc.shapes_at({"x": ("...", "C")}, (0, 16), least=1) == {"x": (1, 16)}
