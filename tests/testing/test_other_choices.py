"""Cases with other attributes and without optional inputs, and which operators get them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from opkit.errors import HostRefusal
from opkit.schema import AttrSpec, AttrValue, OpSpec, TensorSpec
from opkit.testing import Case, Verdict, load_golden, run_cases
from opkit.testing.cases import make_inputs
from opkit.testing.probing import probing_cases

from .conftest import dtypes, tensor

Array = np.ndarray[Any, Any]


def with_attribute(kind: str, default: AttrValue | None) -> OpSpec:
    attr = AttrSpec("a", kind, required=default is None, default=default)
    inputs, outputs = (tensor("x", "float32"),), (tensor("y", "float32"),)
    return OpSpec("Probe", "probe", inputs, outputs, (attr,), Path("probe.json"))


@pytest.fixture
def cases_for(write_golden: Callable[[str], Path]) -> Callable[[OpSpec, str], list[Case]]:
    """The cases that host code may refuse, of a golden's expression."""

    def cases(operator: OpSpec, expression: str) -> list[Case]:
        names = [t.name for t in operator.inputs] + [f"{a.name}=None" for a in operator.attrs]
        text = f"import numpy as np\ndef probe({', '.join(names)}):\n    return {expression}\n"
        found = probing_cases(operator, load_golden(write_golden(text)))
        return [case for case in found if case.may_be_refused]

    return cases


# An epsilon shows once it is large, a bound where something reaches it.
@pytest.mark.parametrize(
    ("kind", "default", "expression", "value"),
    [
        ("float", 1.5, "x * a", 2.2509375),
        ("float", 2.0, "x * a", 3.2509375),
        ("float", 1e-6, "x / np.sqrt(x * x + a)", 0.25),
        ("float", 0.0, "x + a", 0.2501172),
        ("float", 40.0, "np.clip(x, -a, a)", 60.265),
        ("float", None, "x * a", 1.5004688),
        ("int", 3, "x + a", 4),
        ("int", 8, "np.clip(np.rint(x * 4), -2**(a - 1), 2**(a - 1) - 1)", 9),
        ("string", "same", "-x if a == 'turned' else x", "turned"),
        ("list_float", (1.0, 2.0), "x * a[0] + a[1]", (1.5004688, 3.2509375)),
        ("list_int", (0, 2), "x * (1 + a[0])", (1, 3)),
    ],
)
def test_an_attribute_gets_another_value_that_shows(
    kind: str,
    default: AttrValue | None,
    expression: str,
    value: AttrValue,
    cases_for: Callable[[OpSpec, str], list[Case]],
) -> None:
    first, *others = cases_for(with_attribute(kind, default), expression)
    assert dict(first.attrs) == {"a": value}
    if expression not in ("x * a", "x + a", "x * a[0] + a[1]", "x * (1 + a[0])"):
        assert others == []


# A bound, a root's summand and a number of bits have no other sign.
@pytest.mark.parametrize(
    ("kind", "default", "expression"),
    [
        ("float", 1.5, "x * a"),
        ("float", 2.0, "x + a"),
        ("float", 0.01, "np.where(x > 0, x, x * a * 100)"),
        ("int", 3, "x * a"),
        ("float", 0.5, "np.tanh(x * a)"),
        ("list_float", (1.5, 0.25), "np.where(x > 0, x * a[0], x * a[1])"),
        ("list_int", (2, 3), "x * a[0] + a[1]"),
        ("int", 3, "np.roll(x, a)"),
        ("int", 60, "np.tril(x.reshape(3, -1), a).reshape(x.shape)"),
    ],
)
def test_a_factor_gets_its_other_sign_and_0(
    kind: str,
    default: AttrValue,
    expression: str,
    cases_for: Callable[[OpSpec, str], list[Case]],
) -> None:
    found = cases_for(with_attribute(kind, default), expression)
    values = [dict(case.attrs)["a"] for case in found]
    negative = tuple(-v for v in default) if isinstance(default, tuple) else -default  # type: ignore[operator]
    none = (0 * default[0],) * len(default) if isinstance(default, tuple) else 0 * default  # type: ignore[operator]
    assert values[1:] == [negative, none]


@pytest.mark.parametrize(
    ("kind", "default", "expression"),
    [
        ("list_float", (1.5, 0.25), "x ** 2 * a[0] + a[0] * a[1]"),
        ("int", 3, "x[..., [a]] + 0 * x"),
        ("int", 1, "np.where(x > 0, np.abs(x) ** a, x)"),
    ],
)
def test_what_is_no_factor_keeps_its_sign(
    kind: str,
    default: AttrValue,
    expression: str,
    cases_for: Callable[[OpSpec, str], list[Case]],
) -> None:
    found = cases_for(with_attribute(kind, default), expression)
    for case in found:
        value = dict(case.attrs)["a"]
        assert min(value if isinstance(value, tuple) else (value,)) >= 0  # type: ignore[operator]


# What a kernel takes for not given, or keeps in float32, shows in a whole number's other end.
@pytest.mark.parametrize(("kind", "values"), [("int32", [4, -3, 0, 2**24 + 1]), ("float32", [4])])
def test_a_whole_summand_of_whole_numbers_is_as_large_as_float32_is_not(
    kind: str, values: list[int], cases_for: Callable[[OpSpec, str], list[Case]]
) -> None:
    operator = with_attribute("int", 3)
    operator = dataclasses.replace(
        operator, inputs=(tensor("x", kind),), outputs=(tensor("y", kind),)
    )
    found = cases_for(operator, "x + a")
    assert [dict(case.attrs)["a"] for case in found][: len(values)] == values


def test_a_lower_bound_is_tried_above_zero_too(
    cases_for: Callable[[OpSpec, str], list[Case]],
) -> None:
    # A kernel that took it for a negative number passed.
    found = cases_for(with_attribute("float", -0.5), "np.maximum(x, a)")
    assert [dict(case.attrs)["a"] for case in found] == [-0.7497656, 0.25]


def test_attributes_change_together_too(
    cases_for: Callable[[OpSpec, str], list[Case]],
) -> None:
    attrs = tuple(AttrSpec(name, "float", required=False, default=2.0) for name in "ab")
    operator = dataclasses.replace(with_attribute("bool", False), attrs=attrs)
    *_, last = cases_for(operator, "np.exp(x / a) + np.exp(x / b)")
    assert dict(last.attrs) == {"a": 3.2509375, "b": 3.2509375}


def test_flags_change_together_too(cases_for: Callable[[OpSpec, str], list[Case]]) -> None:
    flags = tuple(AttrSpec(name, "bool", required=False, default=False) for name in "ab")
    operator = dataclasses.replace(with_attribute("bool", False), attrs=flags)
    (case,) = cases_for(operator, "(x + 1) * (2 if a else 1) * (-1 if b else 1)")
    assert dict(case.attrs) == {"a": True, "b": True}
    assert cases_for(dataclasses.replace(operator, attrs=flags[:1]), "-x if a else x") == []


def test_each_word_has_a_case(cases_for: Callable[[OpSpec, str], list[Case]]) -> None:
    expression = "-x if a == 'turned' else x / 2 if a == 'halved' else x"
    found = cases_for(with_attribute("string", "same"), expression)
    assert [dict(case.attrs)["a"] for case in found] == ["turned", "halved"]


def test_results_of_another_value_stay_within_their_type(
    cases_for: Callable[[OpSpec, str], list[Case]],
) -> None:
    operator = dataclasses.replace(with_attribute("int", 8), outputs=(tensor("y", "int8"),))
    (case,) = cases_for(operator, "np.clip(np.rint(x * 4), -2**(a - 1), 2**(a - 1) - 1)")
    assert dict(case.attrs) == {"a": 7}


# What shows in nothing, changes shapes, or is refused.
@pytest.mark.parametrize(
    ("kind", "default", "expression"),
    [
        ("float", 1.5, "x + 0 * a"),
        ("int", 1, "np.repeat(x, a)"),
        ("int", 0, "[x][a]"),
        ("float", 1.0, "np.log(-a + 1.0 + 0 * x)"),
        ("string", "same", "x"),
    ],
)
def test_other_attributes_that_mean_nothing_have_no_case(
    kind: str,
    default: AttrValue,
    expression: str,
    cases_for: Callable[[OpSpec, str], list[Case]],
) -> None:
    assert cases_for(with_attribute(kind, default), expression) == []


def test_an_optional_input_is_left_out_where_the_golden_does_without(
    cases_for: Callable[[OpSpec, str], list[Case]],
) -> None:
    bias = TensorSpec("b", "optional", dtypes("float32"), ("ND",))
    operator = dataclasses.replace(
        with_attribute("bool", False), inputs=(tensor("x", "float32"), bias), attrs=()
    )
    assert cases_for(operator, "x + b") == []
    (case,) = cases_for(operator, "x if b is None else x + b")
    assert case.shapes[1] is None and case.name.endswith("-no_b")


@pytest.mark.parametrize("refuses", [True, False])
def test_host_code_may_refuse_it_and_not_be_wrong(
    refuses: bool,
    write_golden: Callable[[str], Path],
    make_project: Callable[..., Any],
) -> None:
    class Kernel:
        """Ignores its attribute, or takes its default alone."""

        def run(self, op: str, inputs: Any, attrs: Any, *, dtypes: Any) -> list[Array]:
            if refuses and attrs["a"] != 1.5:
                raise HostRefusal("a must be 1.5")
            return [inputs[0] * np.float32(1.5)]

    operator = with_attribute("float", 1.5)
    golden = load_golden(write_golden("def probe(x, a):\n    return x * a\n"))
    report = run_cases(
        make_project(operator),
        probing_cases(operator, golden),
        library=Kernel(),  # type: ignore[arg-type]
        golden=golden,
    )
    others = {r.verdict for r in report.results if r.case.may_be_refused}
    assert others == {Verdict.REFUSED if refuses else Verdict.FAIL}
    assert report.passed is refuses


def test_lists_have_other_lengths_where_the_golden_takes_them(
    cases_for: Callable[[OpSpec, str], list[Case]],
) -> None:
    # A kernel that looped over two tensors passed.
    xs = dataclasses.replace(tensor("xs", "float32"), param_type="dynamic")
    operator = dataclasses.replace(with_attribute("bool", False), inputs=(xs,), attrs=())
    found = cases_for(operator, "sum(xs)")
    assert [case.list_length for case in found] == [3, 1]
    assert [len(make_inputs(case)[0]) for case in found] == [3, 1]
    assert [case.list_length for case in cases_for(operator, "xs[0] - xs[1]")] == [3]
