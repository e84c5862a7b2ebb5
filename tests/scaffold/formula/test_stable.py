from __future__ import annotations

import pytest

from opkit.scaffold.formula import parse
from opkit.scaffold.formula.stable import stabilise
from opkit.scaffold.formula.text import to_formula


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
    ],
)
def test_a_cancelling_form_gets_its_accurate_equal(make_spec, formula, stable):
    rewritten = stabilise(parse(make_spec(formula)).outputs[0].expression)
    assert rewritten == parse(make_spec(stable)).outputs[0].expression


@pytest.mark.parametrize(
    "formula", ["2 + tanh(x)", "1 + exp(x)", "1 + sigmoid(x)", "1 + tanh(x)**2"]
)
def test_other_forms_stay_as_they_are(make_spec, formula):
    expression = parse(make_spec(formula)).outputs[0].expression
    assert to_formula(stabilise(expression)) == to_formula(expression)
