"""What a kernel computes is what the formula says, also for NaN, infinities, signed zeros, the
smallest numbers and at the borders of domains; judged by a reader that shares nothing with opkit.
"""

from __future__ import annotations

import numpy as np
import pytest

from opkit.scaffold.formula import golden_source, parse

from .compiled import compiled, computed
from .reading import read

EDGES = np.array(
    [
        *(np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -2.0, -4.0, 4.0, 3.0),
        *(1e-45, -1e-45, 1e-38, -1e-38, 1.0000001, 0.99999994, -0.99999994, 1e-4, -1e-4, 20.0),
        *(-20.0, 50.0, -50.0, 6.0, -3.0, 2.5, -1.5, 0.75),
    ],
    np.float32,
).reshape(2, 16)

# Where float64, or float32 without a way around it, overflows or cancels inside.
OUT_OF_RANGE = {
    "1/x - 1/x": [1e-45],
    "log(x**2)": [1e-45, 1e-38],
    "log(1 - sigmoid(x))": [50.0],
    "-(1 - sigmoid(x))**2*log(sigmoid(x))": [50.0],
}

ONE_INPUT = [
    # The simplifier used to make x, x, 1, 1, 0, 0 of these.
    *("sqrt(x)*sqrt(x)", "exp(log(x))", "x/x", "exp(x)*exp(-x)", "x - x", "1/x - 1/x"),
    *("x*0", "0*x + 1", "x + 0", "x - 0", "0 - x", "-x", "x**0", "x**1", "0.5*x*4", "2*x - 3*x"),
    *("x*x/x", "x**2/x", "1/(1/x)", "(x**2)**0.5", "sqrt(x**2)", "sqrt(x)**2", "x**3 - x**2"),
    *("x**2 + x", "x**3 + x", "x**2 - x", "x**4 - x**2 + 1", "(x - 1)*(x + 1)", "x**-1", "x**-2"),
    *("log(x**2)", "log(exp(x))", "log(x) - log(x)", "abs(x)/x", "x*abs(x)", "abs(-x)", "sign(x)"),
    *("maximum(x, 0)", "minimum(x, 0)", "relu(x)", "minimum(maximum(x, -1), 1)", "relu(-x)*0"),
    *(
        "where(x > 0, x, -x)",
        "where(x > 0, log(x), 0)",
        "where(x == x, 1, 2)",
        "where(x != 0, 1/x, 0)",
    ),
    *("floor(x)", "ceil(x)", "round(x)", "x - floor(x)", "rsqrt(x)", "reciprocal(x)", "square(x)"),
    *("tanh(x)", "sigmoid(x)", "softplus(x)", "expm1(x)", "log1p(x)", "sinh(x)", "cosh(x)"),
    *("asinh(x)", "atanh(x)", "x*sigmoid(x)", "x*tanh(softplus(x))", "x*tanh(log(1 + exp(x)))"),
    *("1 + tanh(x)", "1 - tanh(x)", "-1 - tanh(x)", "1 - tanh(x)**2", "tanh(x)**2 - 1"),
    *(
        "1 - sigmoid(x)",
        "sigmoid(x) - 1",
        "exp(x) - 1",
        "1 - exp(x)",
        "exp(-x) - 1",
        "3*exp(x) - 3",
    ),
    *("log(1 + exp(x))", "log(1 + exp(-x))", "log1p(exp(x))", "1/(1 + exp(-x))", "1/(1 + exp(x))"),
    *("exp(x)/(1 + exp(x))", "exp(-x)/(1 + exp(-x))", "x/(1 + exp(-x))", "1/(1 + exp(x))**2"),
    *("(exp(x) - exp(-x))/(exp(x) + exp(-x))", "(exp(2*x) - 1)/(exp(2*x) + 1)"),
    *("(1 - exp(-x))/(1 + exp(-x))", "(exp(x) - exp(-x))/2", "(exp(x) + exp(-x))/2"),
    *("log(1 + x)", "log(1 - x)", "log(x + 1)", "log(1 + x**2)", "log(1 + abs(x))", "log(3 + x)"),
    *("0.5*log((1 + x)/(1 - x))", "0.5*(log(1 + x) - log(1 - x))", "log(x + sqrt(x**2 + 1))"),
    *("x - tanh(x)", "2*x - 2*tanh(x)", "log(cosh(x))", "log((exp(x) + exp(-x))/2)"),
    *("x + softplus(-2*x) - log(2)", "log(sigmoid(x))", "log(1 - sigmoid(x))"),
    *("sigmoid(x) - sigmoid(-x)", "1 - 4*sigmoid(x)*sigmoid(-x)", "2/(1 + exp(-2*x)) - 1"),
    *("where(x > 0, x, exp(x) - 1)", "2**x", "e**x", "0.5**x", "exp(x)**2", "1/exp(x)"),
    *("-(1 - sigmoid(x))**2*log(sigmoid(x))", "maximum(x, 0) + log(1 + exp(-abs(x)))"),
    *("x*exp(50)*exp(50)*exp(-50)", "x*1e-30*1e-30*1e30", "max(x, 1)/min(x, 1)"),
    *("x - max(x, axis=-1)", "max(x, axis=-1) - (x - x)", "x/sum(abs(x), axis=-1)"),
]


def lowered(formula, *, fast_math=False, **inputs):
    """Return what the compiler's graph of a formula computes in float32."""
    found = computed(compiled(formula, fast_math=fast_math, **inputs), inputs)
    return np.broadcast_to(found, np.broadcast_shapes(*(a.shape for a in inputs.values())))


def single(values):
    with np.errstate(over="ignore"):
        return values.astype(np.float32)


def assert_means(actual, wide, limit=2e-6):
    expected = single(wide)
    np.testing.assert_array_equal(np.isnan(actual), np.isnan(expected))
    infinite = np.isinf(actual) | np.isinf(expected)
    np.testing.assert_array_equal(actual[infinite], expected[infinite])
    zero = (wide == 0) & (actual == 0)
    np.testing.assert_array_equal(np.signbit(actual[zero]), np.signbit(expected[zero]))
    rest = np.isfinite(expected) & np.isfinite(actual)
    error = np.abs(actual[rest].astype(np.float64) - wide[rest])
    # As written a form may cancel in float64: 1e-14 is what that leaves of numbers near 1.
    assert np.all(error <= limit * np.abs(wide[rest]) + 1e-14)


@pytest.mark.parametrize("formula", ONE_INPUT)
def test_a_kernel_computes_what_is_written(formula):
    left_out = np.float32(OUT_OF_RANGE.get(formula, []))
    x = np.where(np.isin(np.abs(EDGES), left_out), np.float32(1), EDGES)
    assert_means(lowered(formula, x=x), read(formula, x=x), limit=1e-5)


@pytest.mark.parametrize("formula", ONE_INPUT)
def test_the_golden_computes_what_is_written(make_spec, formula):
    module: dict[str, object] = {}
    exec(golden_source(make_spec(formula)), module)
    actual, expected = module["test_op"](EDGES), read(formula, x=EDGES)
    np.testing.assert_allclose(actual, expected, rtol=1e-12, atol=1e-15)
    zero = (expected == 0) & (actual == 0)
    np.testing.assert_array_equal(np.signbit(actual[zero]), np.signbit(expected[zero]))


@pytest.mark.parametrize(
    "formula",
    [
        *("x*b/b", "x/b*b", "x + b - b", "x*b - x*b", "sqrt(x*b)/sqrt(b)", "(x + b)*(x - b)"),
        *("x/b/x", "maximum(x, b) - minimum(x, b)", "where(x < b, x/b, b/x)", "x*sigmoid(b)"),
        *("x/(x + b)", "x*(b - b) + 1", "(x - b)/(x - b)", "x*1e20*b*1e-20", "b*x - 2*x"),
        *("-x - b", "-(x + b)"),
    ],
)
def test_two_inputs_meet_as_written(formula):
    values = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -2.0, 30.0]
    x, b = (np.array(one, np.float32) for one in np.meshgrid(values, values))
    assert_means(lowered(formula, x=x, b=b), read(formula, x=x, b=b))


def test_the_shape_follows_the_formula_as_written(make_spec):
    # x - x used to vanish, and with it the output's second axis.
    (output,) = parse(make_spec("max(x, axis=-1) - (x - x)")).outputs
    assert not output.per_row


@pytest.mark.parametrize(
    ("formula", "simple"),
    [
        ("sqrt(x)*sqrt(x)", "x"),
        ("exp(log(x))", "x"),
        ("x/x + 0*x", "1"),
        ("x - x", "0*x"),
        ("exp(x)*exp(-x)", "1"),
        ("3*x - 2*x", "x"),
    ],
)
def test_fast_math_alone_simplifies_beyond_that(make_spec, formula, simple):
    x = np.array([[-4.0, 2.0, 0.0, -1e10]], np.float32)
    fast = lowered(formula, fast_math=True, x=x)
    np.testing.assert_array_equal(fast, np.broadcast_to(read(simple, x=x), x.shape))
    assert golden_source(make_spec(formula)) is not None
