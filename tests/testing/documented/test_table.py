"""References that documents give as functions: how they are bound to operators, and shown."""

from __future__ import annotations

import numpy as np
import pytest

from opkit.errors import OperatorError
from opkit.testing import evaluate_expression, find_by_name, formulas_of
from opkit.testing.documented import calls_in, documented_as
from opkit.testing.documented.table import BY_NAME, OF_OPERATORS, documented
from tests.testing.test_by_name import operator


def test_each_function_says_what_it_computes_in_a_line() -> None:
    assert all(row.formula for row in BY_NAME.values())
    assert {row.name for rows in OF_OPERATORS.values() for row in rows} == set(BY_NAME)


def test_each_kind_of_input_is_known_by_its_annotation() -> None:
    # A misspelt one would be given whatever the case has, an array for a tensor.
    plain = {"bool", "int", "float", "str", "list"}
    for row in BY_NAME.values():
        for name, annotation in row.function.__annotations__.items():
            first = str(annotation).partition(" ")[0].partition("[")[0]
            known = {"Tensor", "Tensors", "Array", "Arrays", "Whole", "Number", "Numbers", "tuple"}
            assert first in plain | known, (row.name, name)


def test_two_functions_of_one_name_are_refused() -> None:
    with pytest.raises(ValueError, match="two references are called swish"):

        @documented("other")
        def swish(x: float) -> float:
            return x


def test_a_call_names_what_each_parameter_is_given() -> None:
    ((function, given),) = calls_in("documented.quantize(x, scales, axis=axis)")
    assert function.divisors == {"scale"} and given["scale"] == "scales"
    assert list(calls_in("documented.unheard_of(x)")) == []
    assert formulas_of("documented.sqrt_grad(dy, y)") == ["dy * 0.5 / y"]


def test_a_users_own_text_may_call_them() -> None:
    spec = operator("Root", "dy y")
    (found,) = evaluate_expression(
        "documented.sqrt_grad(dy, y) + 1", spec, [np.array([4.0]), np.array([2.0])], attrs={}
    )
    assert found == [2.0]
    with pytest.raises(OperatorError, match="documented has no reference 'cbrt_grad'"):
        evaluate_expression("documented.cbrt_grad(dy, y)", spec, [None, None], attrs={})


@pytest.mark.torch
def test_an_operator_of_more_results_or_of_lists_has_another_reference() -> None:
    # A text had as many results as its value, which only a run showed: each case of it failed.
    assert find_by_name(operator("SquaredRelu", "x")) is not None
    assert find_by_name(operator("SquaredRelu", "x", "y mask")) is None
    assert find_by_name(operator("AccumulateNV2", "x*")) is not None
    assert find_by_name(operator("AccumulateNV2", "x")) is None


def test_the_first_of_several_takes_most() -> None:
    assert [row.name for row in documented_as("mat_mul")] == ["mat_mul_with_bias", "mat_mul"]
