"""Failing cases run again: which are reported to change, and which to pass alone."""

from __future__ import annotations

from dataclasses import replace

from opkit.dtypes import find_dtype
from opkit.testing import (
    Case,
    CaseResult,
    PrecisionReport,
    Verdict,
    failure_text,
    with_reruns,
)
from opkit.testing.reruns import CHANGES, PASSES_ALONE

HALF = find_dtype("float16")
assert HALF is not None
CASE = Case("Triu", "triu", 0, (HALF, HALF), (3,), ((3,),), (), 0, "normal")


def result(verdict: Verdict, variant: int = 0, message: str = "") -> CaseResult:
    return CaseResult(replace(CASE, variant=variant), verdict, (), message, 0.0)


def told(
    verdicts: list[CaseResult], alone: Verdict, changes: str = ""
) -> tuple[list[str], list[Case]]:
    asked: list[Case] = []

    def run(case: Case) -> CaseResult:
        asked.append(case)
        return result(alone)

    report = with_reruns(
        PrecisionReport("triu", "conditioned", 0, tuple(verdicts)),
        changes=lambda case: changes,
        alone=run,
        asks_alone=True,
    )
    assert [one.verdict for one in report.results] == [one.verdict for one in verdicts]
    return [failure_text(one, report) for one in report.results], asked


def test_what_fails_after_others_and_passes_alone_is_told() -> None:
    # A tiling function that never resets a global variable made right kernels look wrong.
    cases = [result(Verdict.PASS), result(Verdict.FAULT, message="reads too far")]
    texts, asked = told(cases, Verdict.PASS)
    assert "reads too far" in texts[1] and PASSES_ALONE in texts[1]
    assert len(asked) == 1


def test_what_fails_alone_too_is_told_as_before() -> None:
    texts, asked = told([result(Verdict.PASS), result(Verdict.FAIL)], Verdict.FAIL)
    assert PASSES_ALONE not in texts[1] and len(asked) == 1


def test_other_values_that_are_wrong_alone_are_no_state() -> None:
    # A kernel that was wrong for negative numbers was told to keep something from launch to launch.
    other = replace(CASE, seed=1)
    found = replace(result(Verdict.FAIL, message="launch 2"), other_values=other)
    texts, asked = told([found], Verdict.FAIL)
    assert asked == [other] and "launch 2" not in texts[0]
    (text,), _ = told([found], Verdict.PASS)
    assert "launch 2" in text


def test_what_another_seed_shows_is_run_again_with_it() -> None:
    found = replace(result(Verdict.FAIL), case=replace(CASE, seed=1))
    text = failure_text(found, PrecisionReport("triu", "conditioned", 0, (found,)))
    assert "--seed 1" in text and "opkit debug" not in text


def test_the_first_of_some_combinations_is_asked_for() -> None:
    verdicts = [result(Verdict.PASS)]
    verdicts += [result(Verdict.FAIL, variant) for variant in (0, 0, 1, 1, 2, 3)]
    texts, asked = told(verdicts, Verdict.PASS)
    assert [case.variant for case in asked] == [0, 1, 2]
    assert [PASSES_ALONE in text for text in texts] == [
        False,
        True,
        False,
        True,
        False,
        True,
        False,
    ]


def test_nothing_ran_before_the_first_and_refusals_are_no_failures() -> None:
    assert told([result(Verdict.FAIL), result(Verdict.REFUSED)], Verdict.PASS)[1] == []


def test_a_result_that_changes_is_told_as_that_also_of_the_first_case() -> None:
    texts, asked = told([result(Verdict.FAIL), result(Verdict.FAIL)], Verdict.PASS, CHANGES)
    assert CHANGES in texts[0] and PASSES_ALONE not in "".join(texts)
    assert asked == []
