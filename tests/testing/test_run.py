"""From a kernel's results to verdicts, with a Python function in the kernel's place."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from opkit.errors import KernelFault, OpkitError, UsageError
from opkit.schema import OpSpec
from opkit.selection import select_by_name
from opkit.testing import (
    PrecisionReport,
    Verdict,
    bfloat16_to_float32,
    load_golden,
    project_cases,
    run_cases,
    to_bfloat16,
)

Array = np.ndarray[Any, Any]
GOLDEN = "def scale(x, *, factor): return factor * x"


def doubled(x: Array) -> list[Array]:
    if x.dtype == np.uint16:
        return [to_bfloat16(2 * bfloat16_to_float32(x))]
    return [2 * x]


@pytest.fixture
def run(
    scale: OpSpec,
    make_project: Callable[..., Any],
    fake_library: Callable[..., Any],
    write_golden: Callable[[str], Path],
) -> Callable[..., PrecisionReport]:
    def run_it(
        kernel: Callable[..., list[Array]],
        *,
        golden: str = GOLDEN,
        only: str = "2x3x17",
        **options: Any,
    ) -> PrecisionReport:
        project = make_project(scale)
        reference = load_golden(write_golden(golden))
        cases = select_by_name(project_cases(project, golden=reference), only)
        library = fake_library(kernel)
        return run_cases(project, cases, library=library, golden=reference, **options)

    return run_it


Run = Callable[..., PrecisionReport]


def verdicts(report: PrecisionReport) -> set[Verdict]:
    return {result.verdict for result in report.results}


def test_a_right_kernel_passes_every_case(run: Run) -> None:
    report = run(doubled, only="not 1048576 and not 1000003 and not factor=")
    assert verdicts(report) == {Verdict.PASS}
    assert report.passed
    assert len(report.results) > 40


def test_a_failure_by_what_pages_state_of_an_instruction_says_so(run: Run) -> None:
    from opkit import runtime

    def inaccurate(x: Array) -> list[Array]:
        (y,) = doubled(x)
        seed = runtime.configuration().inaccuracy_seed
        return [y if seed == 0 or y.dtype != np.float32 else (y * 1.01).astype(np.float32)]

    runtime.configure(inaccuracy_seed=1)
    try:
        report = run(inaccurate, only="2x3x17 and float32")
        assert runtime.configuration().inaccuracy_seed == 1
    finally:
        runtime.configure(inaccuracy_seed=0)
    assert verdicts(report) == {Verdict.FAIL}
    assert "it passes with Rsqrt and Reciprocal rounded correctly" in report.results[0].message
    # Without the errors there is nothing to say of them.
    assert verdicts(run(inaccurate, only="2x3x17 and float32")) == {Verdict.PASS}


def test_a_wrong_kernel_fails_where_there_are_elements(run: Run) -> None:
    def wrong(x: Array) -> list[Array]:
        (y,) = doubled(x)
        if y.size:
            y.reshape(-1)[-1] = 0
        return [y]

    report = run(wrong, only="float32 and (2x3x17 or 3x0x4)")
    assert {result.case.shape: result.verdict for result in report.results} == {
        (2, 3, 17): Verdict.FAIL,
        (3, 0, 4): Verdict.PASS,
    }
    assert not report.passed
    worst = report.results[0].outputs[0].comparison.worst
    assert worst is not None
    assert (worst.index, worst.actual) == ((1, 2, 16), 0.0)


def test_the_kernel_gets_its_op_type_attributes_and_input_dtypes(
    scale: OpSpec, make_project: Callable[..., Any], fake_library: Callable[..., Any]
) -> None:
    project, library = make_project(scale), fake_library(doubled)
    cases = select_by_name(project_cases(project, golden=None), "bfloat16-7919")
    run_cases(project, cases, library=library, golden=None)
    assert library.calls == [("Scale", {"factor": 2.0}, ["bfloat16"])]


# Its outputs are right: it passed, and whoever gave the input found another one.
def test_a_kernel_that_changes_its_input_fails(
    run: Run, fake_library: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fake_library, "changed_inputs", lambda self: ["x"], raising=False)
    report = run(doubled)
    assert {result.verdict for result in report.results} == {Verdict.FAIL}
    assert "writes to its input x" in report.results[0].message


def test_a_result_that_was_never_written_fails(run: Run) -> None:
    report = run(lambda x: [np.full_like(x, np.nan)], only="float16-2x3x17 and not bfloat16")
    assert verdicts(report) == {Verdict.FAIL}
    assert report.results[0].outputs[0].comparison.nan_mismatches == 2 * 3 * 17


def test_without_a_reference_a_case_neither_passes_nor_fails(run: Run) -> None:
    report = run(doubled, golden="def other(x): return x")
    assert verdicts(report) == {Verdict.NO_REFERENCE}
    assert not report.passed
    assert "no function scale" in report.results[0].message


def test_a_fault_is_its_own_verdict_with_the_faults_text(run: Run) -> None:
    def faulty(x: Array) -> list[Array]:
        raise KernelFault("writes past the end", category="OutOfBounds")

    report = run(faulty)
    assert verdicts(report) == {Verdict.FAULT}
    assert "[MEM-BOUNDS]" in report.results[0].message


def test_a_refusal_of_the_host_code_is_an_error_and_the_next_case_runs(run: Run) -> None:
    def refusing(x: Array) -> list[Array]:
        if x.dtype == np.float16:
            raise UsageError("TilingFunc refused")
        return doubled(x)

    report = run(refusing)
    assert [result.verdict for result in report.results] == [
        Verdict.ERROR,
        Verdict.PASS,
        Verdict.PASS,
    ]
    assert report.results[0].message == "TilingFunc refused"


def test_our_own_bug_is_no_verdict(run: Run) -> None:
    def broken(x: Array) -> list[Array]:
        raise OpkitError("the emulator is broken")

    with pytest.raises(OpkitError, match="the emulator is broken"):
        run(broken)


def test_a_wrong_output_shape_fails_with_both_shapes(run: Run) -> None:
    report = run(lambda x: [doubled(x)[0][:1]])
    assert verdicts(report) == {Verdict.FAIL}
    assert "shape (1, 3, 17), the golden has (2, 3, 17)" in report.results[0].message


def test_a_missing_output_fails(run: Run) -> None:
    report = run(lambda x: [])
    assert verdicts(report) == {Verdict.FAIL}
    assert "has 1 outputs, the kernel gave 0" in report.results[0].message


# A forgotten return made every kernel right.
def test_a_golden_that_says_nothing_is_an_error(run: Run) -> None:
    report = run(doubled, golden="def scale(x, *, factor): factor * x")
    assert {result.verdict for result in report.results} == {Verdict.ERROR}
    assert "says nothing of any output" in report.results[0].message
    assert not report.passed


def test_a_failing_golden_is_an_error_at_its_line(run: Run) -> None:
    report = run(doubled, golden="def scale(x, *, factor):\n    return x / nothing\n")
    assert verdicts(report) == {Verdict.ERROR}
    assert "golden.py:2: NameError" in report.results[0].message


def test_no_cases_at_all_is_no_pass(run: Run) -> None:
    assert not run(doubled, only="nothing").passed


def test_progress_hears_of_every_case(run: Run) -> None:
    heard: list[str] = []
    report = run(doubled, progress=lambda result: heard.append(result.case.name))
    assert heard == [result.case.name for result in report.results]


def test_one_operator_is_chosen_by_either_name(
    scale: OpSpec, norm: OpSpec, make_project: Callable[..., Any]
) -> None:
    project = make_project(scale, norm)
    for name in ("Norm", "norm"):
        assert {case.op for case in project_cases(project, golden=None, op=name)} == {"Norm"}
    with pytest.raises(UsageError, match='no operator "scal"') as caught:
        project_cases(project, golden=None, op="scal")
    assert caught.value.help == 'did you mean "scale"?'
