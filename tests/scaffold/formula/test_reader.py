from __future__ import annotations

import json
from collections import Counter
from fractions import Fraction
from pathlib import Path

import pytest

from opkit.algebra import number, product, tensor, to_formula
from opkit.errors import SpecError
from opkit.scaffold import render
from opkit.scaffold.formula import parse, reader
from opkit.schema import parse as load_text


def expression(make_spec, formula, **options):
    return parse(make_spec(formula, **options)).outputs[0].expression


@pytest.mark.parametrize(
    ("formula", "column", "words"),
    [
        ("x +", 4, "not a formula"),
        ("x + gama", 5, '"gama" is not an input'),
        ("exq(x)", 1, '"exq" is not a function'),
        ("x % 2", 1, "% is not part of the formula language"),
        ("x and x", 1, "BoolOp"),
        ("x^2", 1, "^ is not part of the formula language"),
        ("erf(x)", 1, '"erf" is not a function'),
        ("x*exp(1000)", 3, "exp(1000) is inf"),
        ("x + exp(89)", 5, "more than float32 holds"),
        ("__import__('os')", 1, '"__import__" is not a function'),
        ("x.real", 1, "Attribute"),
        ("[x for x in x]", 1, "ListComp"),
        ("(lambda: x)()", 1, "only plain functions"),
        ("'x'", 1, "is not a number"),
        ("x > 0", 1, "a comparison is not a value"),
        ("where(x, 1, 2)", 1, "where starts with a comparison"),
        ("where(0 < x < 1, 1, 2)", 7, "one comparison"),
        ("x**x", 4, "the exponent must be a number"),
        ("x**65", 4, "larger than 64"),
        ("x/0", 3, "division by zero"),
        ("log(0)*x", 1, "undefined"),
        ("sum(x)", 1, "needs axis=-1"),
        ("sum(x, axis=0)", 13, "only the last axis"),
        ("sum(2, axis=-1)", 5, "the same along the row"),
        ("tanh(x, x)", 1, "takes 1 values"),
        ("exp", 1, "is a function"),
        ("1e39*x", 1, "does not fit float32"),
        ("row(2)", 1, "name of one input"),
        ("1 + like(x, x)", 5, "enclose the whole formula"),
    ],
)
def test_a_wrong_formula_names_its_column(make_spec, formula, column, words):
    with pytest.raises(SpecError) as caught:
        parse(make_spec(formula))
    assert caught.value.message.startswith(f"column {column} of")
    assert words in caught.value.message
    assert caught.value.pointer == "/output_desc/0/formula"


@pytest.mark.parametrize(
    ("formula", "nearest"), [("gama*x", "gamma"), ("sqr(x)", "sqrt"), ("epsilo*x", "epsilon")]
)
def test_a_misspelt_name_gets_the_nearest_one(make_spec, formula, nearest):
    spec = make_spec(formula, inputs=("x", "gamma"), attrs=[("epsilon", "float", 1e-6)])
    with pytest.raises(SpecError) as caught:
        parse(spec)
    assert nearest in str(caught.value)


@pytest.mark.parametrize("formula", ["(" * 300 + "x" + ")" * 300, "-" * 5000 + "x", "x+" * 6000])
def test_an_extreme_formula_is_an_error_and_no_crash(make_spec, formula):
    with pytest.raises(SpecError):
        parse(make_spec(formula))


@pytest.mark.parametrize(
    ("formula", "help"),
    [
        ("x^2", "a power is written x**2"),
        ("erf(x)", 'give every input a "shape"'),
        ("clip(x, 0, 1)", "minimum(maximum(x, low), high)"),
        ("var(x, axis=-1)", "mean((x - mean(x, axis=-1))**2, axis=-1)"),
        ("silu(x)", "x*sigmoid(x)"),
        ("x if x > 0 else 0", "where(condition, a, b)"),
        ("x // 2", "floor(x/y)"),
    ],
)
def test_what_people_expect_is_refused_with_what_to_write(make_spec, formula, help):
    # erf used to be "did you mean where?".
    with pytest.raises(SpecError) as caught:
        parse(make_spec(formula))
    assert help in str(caught.value)


def test_a_sum_of_700_terms_is_read_and_a_message_shows_only_the_place(make_spec):
    terms = [f"{i}*x" for i in range(700)]
    assert len(expression(make_spec, " + ".join(terms)).args) == 700
    with pytest.raises(SpecError) as caught:
        parse(make_spec(" + ".join([*terms[:350], "gama*x", *terms[350:]])))
    assert '"gama" is not an input' in caught.value.message
    assert "gama*x" in caught.value.message.split('"')[1]
    assert len(str(caught.value)) < 400


def test_decimals_are_exact(make_spec):
    tenth = number(Fraction(1, 10))
    assert expression(make_spec, "0.1*x") == product(tenth, tensor("x"))


def test_an_input_hides_a_constant(make_spec):
    assert expression(make_spec, "e*2", inputs=("e",)) == product(number(2), tensor("e"))


@pytest.mark.parametrize(
    ("formula", "kind", "per_row"),
    [
        ("x*2", "elementwise", False),
        ("x*sum(x, axis=-1)", "rowwise", False),
        ("sqrt(mean(x**2, axis=-1))", "rowwise", True),
        ("like(mean(x, axis=-1), x)", "rowwise", False),
        ("x/columns", "rowwise", False),
    ],
)
def test_a_formula_is_classified_by_what_it_does_along_the_row(make_spec, formula, kind, per_row):
    parsed = parse(make_spec(formula))
    assert parsed.kind == kind
    assert parsed.outputs[0].per_row is per_row


def test_keepdims_is_kept(make_spec):
    assert parse(make_spec("max(x, axis=-1, keepdims=True)")).outputs[0].keepdims
    assert not parse(make_spec("max(x, axis=-1)")).outputs[0].keepdims


def test_an_input_is_per_row_everywhere_or_nowhere(make_spec):
    with pytest.raises(SpecError, match="used both as"):
        parse(make_spec("row(a)*x", "a*x", inputs=("x", "a")))


@pytest.mark.parametrize(
    "formula",
    [
        "0.5*x*(1+tanh(sqrt(2/pi)*(x+0.044715*x**3)))",
        "x*rsqrt(mean(x**2, axis=-1)+1e-6)",
        "where(x >= -1.5, -x**2, abs(x))/(2-x)",
        "exp(-x)**2 - log(1+x**2)**3 + x**-1.5 + 2**x",
        "max(x, 0)*min(x, 6)*sign(x)*floor(x)*ceil(x)*round(x)*softplus(x)*expm1(x)*sigmoid(x)",
        "sum(where(x == max(x, axis=-1), 1, 0), axis=-1)/columns",
        "-(x - 1)*-3/7",
    ],
)
def test_the_text_of_an_expression_parses_back_to_it(make_spec, formula):
    first = expression(make_spec, formula)
    assert expression(make_spec, to_formula(first)) == first


def test_a_projects_files_are_made_from_one_reading_of_a_formula(monkeypatch):
    # Reading GELU's took place 19 times: each file, check and gradient read it anew.
    read = Counter()
    real = reader._Reader.read
    monkeypatch.setattr(
        reader._Reader, "read", lambda self: (read.update([self.text]), real(self))[1]
    )
    formula = "0.5*x*(1 + tanh(sqrt(2/pi)*(x + 0.0447*x**3)))"
    prototype = {
        "op": "ReadOnce",
        "input_desc": [{"name": "x", "type": ["float16", "float32"], "format": ["ND", "ND"]}],
        "output_desc": [
            {
                "name": "y",
                "type": ["float16", "float32"],
                "format": ["ND", "ND"],
                "formula": formula,
            }
        ],
    }
    (spec,) = load_text(json.dumps([prototype]), file=Path("read_once.json"))
    parse.cache_clear()
    render(spec)
    assert read[formula] == 1
    assert set(read.values()) == {1}
