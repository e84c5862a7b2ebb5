"""Operators that are right in their first launches and not in later ones of one process."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from opkit import runtime
from opkit.errors import KernelFault
from opkit.schema import OpSpec
from opkit.testing import (
    Case,
    CaseResult,
    Endurance,
    Golden,
    PrecisionReport,
    Verdict,
    endure,
    load_golden,
    run_cases,
    with_endurance,
)
from opkit.testing.cases import make_case
from opkit.testing.endurance import LAUNCHES, endurance_of

from .conftest import FakeLibrary, tensor

Array = np.ndarray[Any, Any]


@pytest.fixture
def operator() -> OpSpec:
    return OpSpec(
        "Twice",
        "twice",
        (tensor("x", "float32"),),
        (tensor("y", "float32"),),
        (),
        Path("twice.json"),
    )


@pytest.fixture
def last(
    operator: OpSpec, write_golden: Callable[[str], Path], make_project: Callable[..., Any]
) -> Callable[[Callable[[Array], list[Array]]], CaseResult]:
    """What many launches of a kernel come to."""
    golden = load_golden(write_golden("def twice(x):\n    return 2 * x\n"))
    assert isinstance(golden, Golden)

    def judged(library: Any, case: Case) -> CaseResult:
        project = make_project(operator)
        return run_cases(project, [case], library=library, golden=golden).results[0]

    def run(kernel: Callable[[Array], list[Array]]) -> CaseResult:
        asked = Endurance(make_case(operator, (5, 7)), LAUNCHES)
        return endure(FakeLibrary(kernel), asked, operator, judged)

    return run


def test_a_right_operator_passes_all_launches(last: Callable[..., CaseResult]) -> None:
    launches: list[int] = []
    result = last(lambda x: launches.append(1) or [2 * x])
    assert result.verdict is Verdict.PASS and len(launches) == LAUNCHES


def test_what_passes_with_the_chip_s_bounds_is_launched_with_them(
    operator: OpSpec, write_golden: Callable[[str], Path], make_project: Callable[..., Any]
) -> None:
    # It was launched without, and its fault was told as something that the operator keeps.
    def kernel(x: Array) -> list[Array]:
        if not runtime.configuration().chip_bounds:
            raise KernelFault("reads beyond", category="OutOfBounds")
        return [2 * x]

    golden = load_golden(write_golden("def twice(x):\n    return 2 * x\n"))
    case = make_case(operator, (5, 7))
    passed = CaseResult(case, Verdict.BEHIND, (), "", 1.0)
    project = make_project(operator)

    def judged(library: Any, case: Case) -> CaseResult:
        return run_cases(project, [case], library=library, golden=golden).results[0]

    result = endure(FakeLibrary(kernel), endurance_of(passed), operator, judged)
    assert result.verdict is Verdict.PASS, result.message
    assert not runtime.configuration().chip_bounds


def test_a_counter_that_ends_the_right_results_is_found(last: Callable[..., CaseResult]) -> None:
    launches: list[int] = []

    def kernel(x: Array) -> list[Array]:
        launches.append(1)
        return [2 * x if len(launches) <= 40 else 2 * x + 1]

    result = last(kernel)
    assert result.verdict is Verdict.FAIL
    assert result.message.startswith("launch 41 of the same case")


# Default cases have a shape each: what is kept for a shape is right in all of them.
def test_results_that_are_kept_for_a_shape_are_found(last: Callable[..., CaseResult]) -> None:
    kept: dict[tuple[int, ...], Array] = {}
    result = last(lambda x: [kept.setdefault(x.shape, 2 * x)])
    assert result.verdict is Verdict.FAIL
    assert result.message.startswith("launch 2 of the same case")
    assert result.other_values is not None and result.other_values.seed != result.case.seed


def test_sums_in_an_open_order_are_judged_not_compared(last: Callable[..., CaseResult]) -> None:
    launches: list[int] = []

    def kernel(x: Array) -> list[Array]:
        launches.append(1)
        return [2 * x * np.float32(1 + len(launches) % 3 * 2.0**-23)]

    assert last(kernel).verdict is Verdict.PASS


def test_a_later_fault_is_told_with_its_launch(last: Callable[..., CaseResult]) -> None:
    launches: list[int] = []

    def kernel(x: Array) -> list[Array]:
        launches.append(1)
        if len(launches) == 9:
            raise KernelFault("the unified buffer is full", category="OutOfMemory")
        return [2 * x]

    result = last(kernel)
    assert result.verdict is Verdict.FAULT
    assert "launch 9" in result.message and "buffer is full" in result.message


def test_the_smallest_passing_case_of_each_combination_is_launched_and_a_slow_one_seldom(
    scale: OpSpec, write_golden: Callable[[str], Path], make_project: Callable[..., Any]
) -> None:
    golden = load_golden(write_golden("def scale(x, factor):\n    return factor * x\n"))
    cases = [
        make_case(scale, shape, variant=variant)
        for variant in (0, 1)
        for shape in ((0,), (64,), (3,))
    ]
    library = FakeLibrary(lambda x, factor=2.0: [x * x.dtype.type(factor)])
    report = run_cases(make_project(scale), cases, library=library, golden=golden)
    asked: list[Endurance] = []

    def run(some: list[Endurance]) -> list[CaseResult]:
        asked.extend(some)
        return [CaseResult(one.case, Verdict.FAIL, (), "late", 0.0) for one in some]

    found = with_endurance(report, run)
    assert [(one.case.variant, one.case.shape) for one in asked] == [(0, (3,)), (1, (3,))]
    assert found.count(Verdict.FAIL) == 2 and not found.passed
    slow = PrecisionReport(
        "p",
        "s",
        0,
        tuple(CaseResult(r.case, r.verdict, r.outputs, "", 60.0) for r in report.results),
    )
    asked.clear()
    with_endurance(slow, run)
    assert {one.launches for one in asked} == {4}
