"""How far float32 is from the truth in functions that the vector unit lacks, in units in the last
place; correctly rounded exp and log stand in for the vector unit's, which have 1 ulp.
"""

from __future__ import annotations

import numpy as np
import pytest

from opkit.scaffold.formula import lower, parse
from opkit.scaffold.formula.interpreter import interpret
from opkit.scaffold.formula.lowerings import LOWERINGS

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


@pytest.fixture(params=["tree", "compiler"])
def lowered(request, make_spec):
    """What a generator's instructions for a formula compute in float32."""
    if request.param == "tree":
        return lambda formula, x: interpret(lower(parse(make_spec(formula))), {"x": x})[0]
    return lambda formula, x: computed(compiled(formula, x=x), {"x": x})


@pytest.mark.parametrize(("formula", "truth", "x", "limit"), CASES, ids=[c[0] for c in CASES])
def test_a_lowered_function_is_within_a_few_ulp(lowered, formula, truth, x, limit):
    actual = lowered(formula, x)
    with np.errstate(all="ignore"):
        wide = truth(x.astype(np.float64))
    spacing = np.spacing(np.abs(wide).astype(np.float32)).astype(np.float64)
    fits = np.abs(wide) > 1e-37
    errors = np.abs(actual[fits] - wide[fits]) / spacing[fits]
    assert errors.max() <= limit, f"{errors.max():.2f} ulp at {x[fits][errors.argmax()]}"


def test_small_arguments_keep_their_relative_accuracy(lowered):
    x = np.float32([[1e-3, 1e-5, -1e-5, 3e-3]])
    for formula, truth in [
        ("x - tanh(x)", x.astype(float) ** 3 / 3),
        ("log(cosh(x))", x.astype(float) ** 2 / 2),
    ]:
        actual = lowered(formula, x)
        np.testing.assert_allclose(actual, truth, rtol=1e-5)


def test_mish_takes_seven_instructions_and_softplus_ten(make_spec):
    def count(formula):
        return len(lower(parse(make_spec(formula))).steps) - 1  # without the conversion to float

    def compiled_count(formula):
        return sum(n.operator != "constant" for n in compiled(formula, x=X).nodes)

    for each in (count, compiled_count):
        assert each("x*tanh(softplus(x))") == 7
        assert each("softplus(x)") == 10


def test_every_function_without_an_instruction_has_its_lowering():
    assert {"tanh", "sigmoid", "softplus", "log1p", "asinh"} <= set(LOWERINGS)


def test_softplus_of_both_signs_shares_its_logarithm(make_spec):
    plan = lower(parse(make_spec("log(sigmoid(x)) + log(1 - sigmoid(x))")))
    assert [step.operation for step in plan.steps].count("Ln") == 1
