from __future__ import annotations

import pytest

from opkit.algebra import stabilise, to_formula
from opkit.scaffold.formula import parse


@pytest.mark.parametrize(
    ("formula", "stable"),
    [
        ("1 + tanh(x)", "2*sigmoid(2*x)"),
        ("1 - tanh(x)", "2*sigmoid(-2*x)"),
        ("0.5 + 0.5*tanh(x)", "sigmoid(2*x)"),
        ("1 - sigmoid(x)", "sigmoid(-x)"),
        ("exp(x) - 1", "expm1(x)"),
        ("3 - 3*exp(x)", "-3*expm1(x)"),
        ("log(1 + exp(x))", "softplus(x)"),
        ("1/(1 + exp(-x))", "sigmoid(x)"),
        ("exp(x)/(1 + exp(x))", "sigmoid(x)"),
        ("1 - tanh(x)**2", "4*sigmoid(-2*x)*sigmoid(2*x)"),
        ("1 - 4*sigmoid(x)*sigmoid(-x)", "tanh(0.5*x)**2"),
        ("sigmoid(x) - sigmoid(-x)", "tanh(0.5*x)"),
        ("(exp(x) - exp(-x))/(exp(x) + exp(-x))", "tanh(x)"),
        ("(exp(x) - 1/exp(x))/(exp(x) + 1/exp(x))", "tanh(x)"),
        ("(exp(2*x) - 1)/(exp(2*x) + 1)", "tanh(x)"),
        ("(1 - exp(-x))/(1 + exp(-x))", "tanh(0.5*x)"),
        ("(exp(x) - exp(-x))/2", "sinh(x)"),
        ("0.5*log((1 + x)/(1 - x))", "atanh(x)"),
        ("log(x + sqrt(x**2 + 1))", "asinh(x)"),
        ("log1p(exp(x))", "softplus(x)"),
        ("log(exp(x))", "x"),
        ("log(sigmoid(x)) - log(1 - sigmoid(x))", "x"),
        ("(exp(x - pi) - exp(pi - x))/(exp(x - pi) + exp(pi - x))", "tanh(x - pi)"),
        ("sigmoid(x - pi) - sigmoid(pi - x)", "tanh(0.5*(x - pi))"),
        ("sqrt(x + 1) - 1", "where(x < 1, x/(sqrt(x + 1) + 1), sqrt(x + 1) - 1)"),
    ],
)
def test_a_cancelling_form_gets_its_accurate_equal(make_spec, formula, stable):
    rewritten = stabilise(parse(make_spec(formula)).outputs[0].expression, fast_math=True)
    assert rewritten == parse(make_spec(stable)).outputs[0].expression


@pytest.mark.parametrize(
    ("formula", "kind"),
    [
        ("x - tanh(x)", "tanhshrink"),
        ("tanh(softplus(x))", "tanh_softplus"),
        ("tanh(log(1 + exp(x)))", "tanh_softplus"),
        ("log(1 + x)", "log_one_plus"),
        ("log(1 - x)", "log_one_plus"),
        ("log(cosh(x))", "logcosh"),
        ("log((exp(x) + exp(-x))/2)", "logcosh"),
        ("log((exp(x - pi) + exp(pi - x))/2)", "logcosh"),
        ("x + softplus(-2*x) - log(2)", "logcosh"),
    ],
)
def test_a_form_without_a_name_in_the_language_is_recognised(make_spec, formula, kind):
    rewritten = stabilise(parse(make_spec(formula)).outputs[0].expression)
    assert rewritten.has(kind)


@pytest.mark.parametrize(
    "formula", ["2 + tanh(x)", "1 + exp(x)", "1 + sigmoid(x)", "1 + tanh(x)**2"]
)
def test_other_forms_stay_as_they_are(make_spec, formula):
    expression = parse(make_spec(formula)).outputs[0].expression
    assert to_formula(stabilise(expression)) == to_formula(expression)
