"""Failing cases run again: whether their results change, and whether they are right alone.

A race between cores or pipes gives other results from run to run, in one process. Host code keeps
its global variables from one launch to the next, as in a program; one that it never resets makes a
later case fail that is right in a process of its own. Values that are wrong there are wrong.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from opkit.testing.cases import Case
from opkit.testing.run import CaseResult, PrecisionReport, Verdict

__all__ = ["CHANGES", "PASSES_ALONE", "with_reruns"]

CHANGES = "its result changes from run to run"
PASSES_ALONE = (
    "passes alone, in a process of its own: its host code or kernel keeps what an earlier launch"
    " left, such as a global variable that is never reset"
)
_MOST = 3
_WRONG = (Verdict.FAIL, Verdict.FAULT)


def with_reruns(
    report: PrecisionReport,
    *,
    changes: Callable[[Case], str],
    alone: Callable[[Case], CaseResult],
    asks_alone: bool,
) -> PrecisionReport:
    """Return a report that says of the first failing cases what runs of them again show.

    The first of each combination of data types is run again, of three combinations at the most;
    the verdicts stay, since a program makes more than one launch, and a race is no excuse. What a
    later launch got wrong with other values is the result of these, where they are wrong alone.

    Args:
        changes: launches a case several times in one process and returns in what the results
            differ; empty where they do not.
        alone: runs a case in a process of its own.
        asks_alone: whether to ask that of what has failed in its first launch.
    """
    first: dict[tuple[str, int], int] = {}
    for number, result in enumerate(report.results):
        if result.verdict in _WRONG:
            first.setdefault(result.combination, number)
    results = list(report.results)
    for number in list(first.values())[:_MOST]:
        result = results[number]
        if result.other_values is not None:
            found = alone(result.other_values)
            if not found.verdict.passed:
                results[number] = found
                continue
        told = changes(result.case) if result.verdict is Verdict.FAIL else ""
        # Nothing ran before the very first.
        if not told and number and asks_alone and alone(result.case).verdict.passed:
            told = PASSES_ALONE
        if told:
            results[number] = replace(
                result, message="\n".join(filter(None, (result.message, told)))
            )
    return replace(report, results=tuple(results))
