"""Failing cases run again in a process of their own: what earlier launches left is not there.

Host code keeps its global variables from one launch to the next, as in a program; one that it never
resets makes a later case fail that is right alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from opkit.testing.cases import Case
from opkit.testing.run import CaseResult, PrecisionReport, Verdict

__all__ = ["PASSES_ALONE", "with_runs_alone"]

PASSES_ALONE = (
    "passes alone, in a process of its own: its host code or kernel keeps what an earlier launch"
    " left, such as a global variable that is never reset"
)
_MOST = 3
_WRONG = (Verdict.FAIL, Verdict.FAULT)


def with_runs_alone(report: PrecisionReport, run: Callable[[Case], CaseResult]) -> PrecisionReport:
    """Return a report that tells of the first failing cases whether they pass alone.

    The first of each combination of data types is asked for, of three combinations at the most;
    the verdicts stay, since a program makes more than one launch.

    Args:
        run: what runs a case in a process of its own.
    """
    first: dict[tuple[str, int], int] = {}
    for number, result in enumerate(report.results):
        # Nothing ran before the very first.
        if number and result.verdict in _WRONG:
            first.setdefault(result.combination, number)
    results = list(report.results)
    for number in list(first.values())[:_MOST]:
        if run(results[number].case).verdict.passed:
            message = "\n".join(filter(None, (results[number].message, PASSES_ALONE)))
            results[number] = replace(results[number], message=message)
    return replace(report, results=tuple(results))
