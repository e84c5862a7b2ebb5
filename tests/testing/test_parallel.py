"""Cases report the same whoever runs them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from opkit.executor import Crew, Lost, Work
from opkit.schema import OpSpec
from opkit.testing import Case, CaseResult, Setup, Verdict, default_cases, run_on
from opkit.toolchain import Project


class Backwards(Crew):
    """Gives results last case first, and loses the first case."""

    def stream(self, cases: Sequence[Case]) -> Iterator[tuple[int, CaseResult | Lost]]:
        for index in reversed(range(1, len(cases))):
            yield index, CaseResult(cases[index], Verdict.PASS, (), "", 0.0)
        yield 0, Lost("signal 11")

    def close(self, *, at_once: bool = False) -> None:
        pass


class BackwardsExecutor:
    workers = 1

    def open(self, work: Work) -> Crew:
        return Backwards()


def test_a_report_has_the_cases_in_their_order_and_the_options_of_the_command(
    scale: OpSpec, tmp_path: Path
) -> None:
    """`-j 2 --standard X` left the standard out of the line that runs a case again."""
    project = Project(root=tmp_path, name="scale", operators=(scale,))
    setup = Setup(project, tmp_path, "Ascend910B2", "mixed")
    cases = default_cases(scale)[:3]
    options = ("--standard", "mixed")
    report = run_on(BackwardsExecutor(), setup, cases, seed=3, options=options)
    assert (report.options, report.seed) == (options, 3)
    assert [result.case for result in report.results] == list(cases)


def test_a_case_that_ends_three_workers_is_a_fault(scale: OpSpec, tmp_path: Path) -> None:
    project = Project(root=tmp_path, name="scale", operators=(scale,))
    setup = Setup(project, tmp_path, "Ascend910B2", None)
    report = run_on(BackwardsExecutor(), setup, default_cases(scale)[:2])
    assert [result.verdict for result in report.results] == [Verdict.FAULT, Verdict.PASS]
    assert "3 workers ended" in report.results[0].message
    assert "signal 11" in report.results[0].message
