"""Plans run in NumPy float32, one rounding an instruction, against float64."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opkit.scaffold.formula import golden_source, lower, parse
from opkit.scaffold.formula.interpreter import interpret

# The CANN ecosystem standard for float32: mean and largest relative error, |g| + 1e-7 below.
MEAN_LIMIT = 2.0**-13
LARGEST_LIMIT = 10 * MEAN_LIMIT

_RANDOM = np.random.default_rng(20)
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
    "7",
    "x",
]


def run(spec, inputs, attrs=None):
    """Return plan results and references of every output, in the shape of the reference."""
    attrs = attrs or {}
    parsed = parse(spec)
    module: dict[str, object] = {}
    exec(golden_source(spec), module)
    expected = module[spec.name](*inputs.values(), **attrs)
    expected = expected if isinstance(expected, tuple) else (expected,)
    actual = interpret(lower(parsed), inputs, attrs)
    return [
        (np.broadcast_to(a, e.shape if e.ndim == a.ndim else (*e.shape, 1)).reshape(e.shape), e)
        for a, e in zip(actual, expected, strict=True)
    ]


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
    for actual, expected in run(make_spec(formula), {"x": rows}):
        check(actual, expected)


def test_inputs_attributes_and_outputs_meet_in_one_plan(make_spec):
    spec = make_spec(
        "x*rsqrt(mean(x**2, axis=-1)+epsilon)*gamma",
        "gamma*alpha**2 + x",
        inputs=("x", "gamma"),
        attrs=[("epsilon", "float", 1e-6), ("alpha", "int", 3)],
    )
    gamma = _RANDOM.uniform(0.5, 2, 16).astype(np.float32)
    inputs = {"x": np.abs(ROWS), "gamma": gamma}
    for actual, expected in run(spec, inputs, {"epsilon": 1e-6, "alpha": 3}):
        check(actual, expected)


def test_gelu_takes_seven_vector_instructions(make_spec):
    plan = lower(parse(make_spec(ACCURATE[0])))
    assert len(plan.steps) == 8  # with the conversion to float
    assert plan.tile_registers == 2


def test_a_common_part_is_computed_once(make_spec):
    plan = lower(parse(make_spec("exp(x)*2 + tanh(exp(x))", "exp(x) + 1")))
    exponentials = [
        step for step in plan.steps if step.operation == "Exp" and step.note == "exp(x)"
    ]
    assert len(exponentials) == 1


@pytest.mark.parametrize("formulas", [("x", "x"), ("x*2", "x*2"), ("x", "tanh(x)"), ("3", "3")])
def test_outputs_never_share_a_tensor_with_each_other_or_an_input(make_spec, formulas):
    spec = make_spec(*formulas)
    plan = lower(parse(spec))
    registers = [value.register for value in plan.outputs]
    assert len(set(registers)) == len(registers)
    for actual, expected in run(spec, {"x": ROWS}):
        check(actual, expected)


def test_integers_keep_to_integer_instructions(make_spec):
    plan = lower(parse(make_spec("max(x, 3)*2 - x + x**3")), integer=True)
    x = np.arange(-50, 50, dtype=np.int32).reshape(4, 25)
    (actual,) = interpret(plan, {"x": x}, dtype=np.int32)
    assert np.array_equal(actual, np.maximum(x, 3) * 2 - x + x**3)


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
    spec = make_spec(f"{formula} + 0*1", inputs=("x", "b"), attrs=[("alpha", "float", 0.75)])
    x = np.linspace(-3, 3, 48, dtype=np.float32).reshape(3, 16)
    b = np.linspace(2, -1, 48, dtype=np.float32).reshape(3, 16)
    for actual, expected in run(spec, {"x": x, "b": b}, {"alpha": 0.75}):
        # Sums may cancel in a random formula, so the error is measured against the largest value.
        scale = max(1.0, float(np.max(np.abs(expected))))
        assert np.max(np.abs(actual - expected)) <= 2e-5 * scale
