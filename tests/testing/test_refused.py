"""Cases that an operator's host code refuses: told as such, and others in their place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from opkit.dtypes import DType, find_dtype
from opkit.errors import HostRefusal, UsageError
from opkit.schema import OpSpec, TensorSpec
from opkit.testing import (
    PrecisionReport,
    Verdict,
    project_cases,
    run_cases,
    with_other_cases,
)

pytestmark = pytest.mark.torch


def dtype(name: str) -> DType:
    found = find_dtype(name)
    assert found is not None
    return found


def tensor(name: str, *kinds: str) -> TensorSpec:
    return TensorSpec(name, "required", tuple(map(dtype, kinds)), ("ND",) * len(kinds))


SPEC = OpSpec(
    "Transpose",
    "transpose",
    (tensor("x", "float32", "float16"), tensor("perm", "int64", "int64")),
    (tensor("y", "float32", "float16"),),
    (),
    Path("library"),
)
PROJECT: Any = SimpleNamespace(name="transpose", operators=(SPEC,))


class ExchangesTwo:
    """A library whose host code takes one order of three axes, in any data type but those named."""

    def __init__(
        self,
        *refused: str,
        error: UsageError = HostRefusal("[Transpose] its tiling function failed: no"),  # noqa: B008
    ) -> None:
        self.refused, self.error = refused, error

    def run(
        self,
        op_type: str,
        inputs: Sequence[Any],
        attrs: Mapping[str, Any],
        *,
        dtypes: Sequence[str],
        out_shape: Any = None,
        out_dtype: Any = None,
    ) -> list[Any]:
        order = tuple(inputs[1].tolist())
        if order != (0, 2, 1) or dtypes[0] in self.refused:
            raise self.error
        return [np.ascontiguousarray(inputs[0].transpose(order))]


def report(library: Any) -> PrecisionReport:
    """Return the cases' verdicts, with others in place of what is refused."""

    def run(cases: Any) -> PrecisionReport:
        return run_cases(PROJECT, cases, library=library, golden=None)

    return with_other_cases(PROJECT, run(project_cases(PROJECT, golden=None)), run)


def test_other_orders_of_axes_are_tried_where_the_first_is_refused() -> None:
    found = report(ExchangesTwo())
    assert found.passed
    assert found.count(Verdict.FAIL) == found.count(Verdict.ERROR) == 0
    right = [result.case for result in found.results if result.verdict is Verdict.PASS]
    assert {case.dtypes[0].name for case in right} == {"float16", "float32"}
    assert all(len(case.shape) == 3 for case in right)
    # What was refused first is told; what was tried in vain is not.
    assert found.count(Verdict.REFUSED) == len(project_cases(PROJECT, golden=None))


def test_a_data_type_of_which_every_case_is_refused_is_told_apart() -> None:
    # Operators whose function in op_api converts some data types failed by those.
    found = report(ExchangesTwo("float16"))
    assert found.count(Verdict.PASS) > 0
    refused = [r.case for r in found.results if r.verdict is Verdict.REFUSED_TYPE]
    assert refused and {case.dtypes[0].name for case in refused} == {"float16"}
    assert {r.case.dtypes[0].name for r in found.results if r.verdict is Verdict.REFUSED} == {
        "float32"
    }
    assert found.passed


def test_a_data_type_that_once_faults_is_not_told_to_be_refused() -> None:
    found = report(ExchangesTwo("float16"))
    index = next(
        place for place, r in enumerate(found.results) if r.verdict is Verdict.REFUSED_TYPE
    )
    first = [
        replace(result, verdict=Verdict.FAULT if place == index else Verdict.REFUSED)
        for place, result in enumerate(found.results)
        if result.case.dtypes[0].name == "float16"
    ]
    again = with_other_cases(
        PROJECT, replace(found, results=tuple(first)), lambda cases: replace(found, results=())
    )
    assert again.count(Verdict.REFUSED_TYPE) == 0 and not again.passed


def test_an_operator_that_refuses_everything_has_not_passed() -> None:
    found = report(ExchangesTwo("float16", "float32"))
    assert found.count(Verdict.REFUSED_TYPE) == len(found.results) > 0
    assert not found.passed
    # Another operator's results do not speak for it.
    other = report(ExchangesTwo()).results
    others = tuple(replace(r, case=replace(r.case, op="Other")) for r in other)
    assert replace(found, results=others).passed
    assert not replace(found, results=(*found.results, *others)).passed


def test_what_fails_otherwise_than_by_refusing_stays_an_error() -> None:
    found = report(ExchangesTwo("float16", "float32", error=UsageError("[Transpose] has 3 inputs")))
    assert found.count(Verdict.REFUSED) == 0
    assert found.count(Verdict.ERROR) == len(found.results)


def test_a_refused_case_that_a_file_asks_for_is_an_error() -> None:

    case = replace(project_cases(PROJECT, golden=None)[0], origin=Path("tests/cases.yaml"))
    (result,) = run_cases(PROJECT, [case], library=ExchangesTwo(), golden=None).results
    assert result.verdict is Verdict.ERROR


ADD = OpSpec(
    "Add",
    "add",
    (tensor("x1", "float32"), tensor("x2", "float32")),
    (tensor("y", "float32"),),
    (),
    Path("library"),
)
ADDITION: Any = SimpleNamespace(name="add", operators=(ADD,))


class AddsOfFourAxes:
    """A library whose host code takes four axes, and does not see what an input's shape is."""

    def run(
        self,
        op_type: str,
        inputs: Sequence[Any],
        attrs: Mapping[str, Any],
        *,
        dtypes: Sequence[str],
        out_shape: Any = None,
        out_dtype: Any = None,
    ) -> list[Any]:
        if inputs[0].ndim != 4:
            raise HostRefusal("[Add] its tiling function failed: four axes")
        return [(inputs[0].ravel() + np.resize(inputs[1], inputs[0].size)).reshape(-1)]


def test_where_shapes_are_taken_others_have_as_many_axes_and_inputs_the_same() -> None:
    # It had one case with tails, and was then given rows to broadcast, which it does not.
    def run(cases: Any) -> PrecisionReport:
        return run_cases(ADDITION, cases, library=AddsOfFourAxes(), golden=None)

    found = with_other_cases(ADDITION, run(project_cases(ADDITION, golden=None)), run)
    taken = [result.case for result in found.results if result.verdict is not Verdict.REFUSED]
    assert (1, 1, 97, 1031) in {case.shape for case in taken} and len(taken) == 6
    assert all(case.shapes[0] == case.shapes[1] for case in taken)
    names = {c.name for c in project_cases(ADDITION, golden=None, others=True)}
    assert {case.name for case in taken} <= names


def test_other_cases_can_be_named() -> None:
    names = {c.name for c in project_cases(PROJECT, golden=None, others=True)}
    assert {result.case.name for result in report(ExchangesTwo()).results} <= names
