"""How far float32 is from the truth in functions that the vector unit lacks, in units in the last
place; correctly rounded exp and log stand in for the vector unit's, which have 1 ulp.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opkit.scaffold.formula import golden_source

from .compiled import compiled, computed
from .reading import FUNCTIONS

_RANDOM = np.random.default_rng(3)
_SIZES = 10.0 ** _RANDOM.uniform(-12, 1.9, 4000)
X = np.concatenate([_SIZES, -_SIZES]).astype(np.float32).reshape(1, -1)
INSIDE = np.concatenate([_RANDOM.uniform(-1, 1, 4000), 1 - 10.0 ** _RANDOM.uniform(-7, 0, 1000)])
INSIDE = np.concatenate([INSIDE, -INSIDE]).astype(np.float32).reshape(1, -1)
ABOVE = np.maximum(X, np.float32(-0.9999))

# Formula, what it is in float64, arguments, largest error in ulp.
CASES = [
    ("tanh(x)", np.tanh, X, 5),
    ("sigmoid(x)", FUNCTIONS["sigmoid"], X, 3),
    ("softplus(x)", FUNCTIONS["softplus"], X, 3.5),
    ("log(1 + exp(x))", FUNCTIONS["softplus"], X, 3.5),
    ("expm1(x)", np.expm1, X, 5),
    ("exp(x) - 1", np.expm1, X, 5),
    ("log1p(x)", np.log1p, ABOVE, 3),
    ("log(1 + x)", np.log1p, ABOVE, 3),
    ("sinh(x)", np.sinh, X, 4),
    ("(exp(x) - exp(-x))/2", np.sinh, X, 4),
    ("cosh(x)", np.cosh, X, 3),
    ("asinh(x)", np.arcsinh, X, 5),
    ("log(x + sqrt(x**2 + 1))", np.arcsinh, X, 5),
    ("atanh(x)", np.arctanh, INSIDE, 5),
    ("0.5*log((1 + x)/(1 - x))", np.arctanh, INSIDE, 5),
    ("log(cosh(x))", lambda x: np.logaddexp(x, -x) - np.log(2), X[np.abs(X) > 0.01][None], 6),
    ("x - tanh(x)", lambda x: x - np.tanh(x), X[np.abs(X) > 0.05][None], 30),
    ("x*tanh(softplus(x))", lambda x: x * np.tanh(np.logaddexp(x, 0)), X, 5),
    ("(exp(x) - exp(-x))/(exp(x) + exp(-x))", np.tanh, X, 5),
    ("sign(x)", np.sign, X, 0),
]


def lowered(formula, x):
    """Return what the compiler's graph of a formula computes in float32."""
    return computed(compiled(formula, x=x), {"x": x})


@pytest.mark.parametrize(("formula", "truth", "x", "limit"), CASES, ids=[c[0] for c in CASES])
def test_a_lowered_function_is_within_a_few_ulp(formula, truth, x, limit):
    actual = lowered(formula, x)
    with np.errstate(all="ignore"):
        wide = truth(x.astype(np.float64))
    spacing = np.spacing(np.abs(wide).astype(np.float32)).astype(np.float64)
    fits = np.abs(wide) > 1e-37
    errors = np.abs(actual[fits] - wide[fits]) / spacing[fits]
    assert errors.max() <= limit, f"{errors.max():.2f} ulp at {x[fits][errors.argmax()]}"


def test_small_arguments_keep_their_relative_accuracy():
    x = np.float32([[1e-3, 1e-5, -1e-5, 3e-3]])
    for formula, truth in [
        ("x - tanh(x)", x.astype(float) ** 3 / 3),
        ("log(cosh(x))", x.astype(float) ** 2 / 2),
    ]:
        actual = lowered(formula, x)
        np.testing.assert_allclose(actual, truth, rtol=1e-5)


def test_mish_takes_seven_operators_and_softplus_ten():
    def count(formula):
        return sum(n.operator != "constant" for n in compiled(formula, x=X).nodes)

    assert count("x*tanh(softplus(x))") == 7
    assert count("softplus(x)") == 10


# The CANN ecosystem standard for float32: mean and largest relative error, |g| + 1e-7 below.
MEAN_LIMIT = 2.0**-13
LARGEST_LIMIT = 10 * MEAN_LIMIT

_SPREAD = np.concatenate(
    [
        _RANDOM.standard_normal(2000) * 3,
        _RANDOM.uniform(-30, 30, 1000),
        10.0 ** _RANDOM.uniform(-12, 2, 1000) * _RANDOM.choice([-1, 1], 1000),
        [0.0, -0.0, 1, -1, 88.8, -88.8, 104, -104, 1000, -1000, 65504, -65504, 1e-30, -1e-30, 3, 3],
    ]
).astype(np.float32)
ROWS = _SPREAD.reshape(-1, 16)

ACCURATE = [
    "0.5*x*(1+tanh(sqrt(2/pi)*(x+0.044715*x**3)))",
    "tanh(x)",
    "sigmoid(x)",
    "x*sigmoid(1.702*x)",
    "softplus(x)",
    "log(1+exp(x))",
    "log(1+exp(-x))",
    "exp(x)-1",
    "1-exp(x)",
    "where(x>0,x,1.5*(exp(x)-1))",
    "x*tanh(log(1+exp(x)))",
    "exp(x)/(1+exp(x))",
    "1/(1+exp(-x))",
    "1-tanh(x)**2",
    "1-sigmoid(x)",
    "sigmoid(x)-sigmoid(-x)",
    "abs(x)*max(x,0)",
    "x/(1+abs(x))",
    "minimum(maximum(x,-1),1)",
    "max(1, min(x, 2))",
    "x**3/(x**2+1)",
    "(x**2+1)**0.5",
    "(x**2+1)**(1/3)",
    "(x**2+1)**-1.5",
    "2**minimum(x,20)",
    "rsqrt(1+square(x))*reciprocal(2+x**2)",
    "sign(x)",
    "floor(x)+ceil(x)+round(x)",
    "where(x != 0, 1/x, 0)",
    "where(abs(x) <= 1, x, where(2 < x, 3, -x))",
    "exp(x-max(x,axis=-1))/sum(exp(x-max(x,axis=-1)),axis=-1)",
    "x*rsqrt(mean(x**2, axis=-1)+1e-6)",
    "max(x,axis=-1)",
    "min(abs(x),axis=-1)",
    "sqrt(mean(x**2,axis=-1)+1)",
    "like(max(x,axis=-1)*2, x)",
    "where(x >= max(x, axis=-1), 1, x/100)",
    "x",
]


def golden(spec, *arrays, precision="float64", **attributes):
    """Return the outputs of an operator's golden."""
    module: dict[str, object] = {}
    exec(golden_source(spec, precision=precision), module)
    found = module[spec.name](*arrays, **attributes)
    return found if isinstance(found, tuple) else (found,)


def shaped(actual, expected):
    """Return what a graph computed, in the shape of the golden, which says what is one per row."""
    whole = (*expected.shape, 1) if expected.ndim == 1 else expected.shape
    rows = actual.reshape(-1, 1) if actual.ndim == 1 and actual.size > 1 else actual
    return np.broadcast_to(rows, whole).reshape(expected.shape)


def check(actual, expected):
    assert np.array_equal(np.isnan(actual), np.isnan(expected))
    fits = np.abs(expected) < 3.4e38
    error = np.abs(actual[fits].astype(np.float64) - expected[fits]) / (
        np.abs(expected[fits]) + 1e-7
    )
    assert error.size
    assert error.mean() < MEAN_LIMIT
    assert error.max() < LARGEST_LIMIT


@pytest.mark.parametrize("formula", ACCURATE)
def test_a_lowered_formula_meets_the_precision_standard(make_spec, formula):
    # Beyond 700 what is written overflows in the reference's float64 too.
    rows = ROWS.clip(-700, 700) if formula == "exp(x)/(1+exp(x))" else ROWS
    (expected,) = golden(make_spec(formula), rows)
    text = formula.removeprefix("like(").removesuffix(", x)")
    check(shaped(lowered(text, rows), expected), expected)


def _formulas() -> st.SearchStrategy[str]:
    leaf = st.sampled_from(["x", "b", "x", "0.5", "2", "3", "alpha", "x", "b"])

    def grow(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        return st.one_of(
            st.builds("({} {} {})".format, inner, st.sampled_from("+-*"), inner),
            st.builds("({}/(1 + abs({})))".format, inner, inner),
            st.builds("tanh({})".format, inner),
            st.builds("sigmoid({})".format, inner),
            st.builds("abs({})".format, inner),
            st.builds("sqrt(1 + square({}))".format, inner),
            st.builds("exp(-abs({}))".format, inner),
            st.builds("max({}, {})".format, inner, inner),
            st.builds("where(x < {0}, {0}, {1})".format, inner, inner),
            st.builds("mean(x + {}, axis=-1)".format, inner),
            st.builds("max(x*{}, axis=-1)".format, st.sampled_from(["2", "alpha", "b"])),
        )

    return st.recursive(leaf, grow, max_leaves=8)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(formula=_formulas())
def test_random_formulas_compute_what_numpy_computes(make_spec, formula):
    x = np.linspace(-3, 3, 48, dtype=np.float32).reshape(3, 16)
    b = np.linspace(2, -1, 48, dtype=np.float32).reshape(3, 16)
    text = f"{formula} + 0*x"
    spec = make_spec(text, inputs=("x", "b"), attrs=[("alpha", "float", 0.75)])
    (expected,) = golden(spec, x, b)
    graph = compiled(text, attributes=("alpha",), x=x, b=b)
    actual = shaped(computed(graph, {"x": x, "b": b}, alpha=0.75), expected)
    # Sums may cancel in a random formula, so the error is measured against the largest value.
    scale = max(1.0, float(np.max(np.abs(expected))))
    assert np.max(np.abs(actual - expected)) <= 2e-5 * scale


@pytest.mark.parametrize("formula", ACCURATE)
def test_a_golden_in_float32_keeps_to_it(make_spec, formula):
    # NumPy gives sqrt(2/pi) as float64, which made float64 of all that it was multiplied with.
    (actual,) = golden(make_spec(formula), ROWS[:4], precision="float32")
    assert actual.dtype == np.float32


def test_a_golden_in_float32_rounds_every_operation(make_spec):
    spec = make_spec("(x + 1)*alpha - x**3", "where(x > 0, 1, 2)/3", attrs=[("alpha", "float", 0)])
    x = np.float32([[1e-4, -7.25, 3.0]])
    a = np.float32(0.1)
    first, second = golden(spec, x, precision="float32", alpha=0.1)
    np.testing.assert_array_equal(first, (x + np.float32(1)) * a - x * x * x)
    np.testing.assert_array_equal(second, np.float32([[1, 2, 1]]) / np.float32(3))
