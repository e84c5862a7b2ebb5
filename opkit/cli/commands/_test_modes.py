"""What `opkit test` does with its cases: run them, look for failing ones, compare their bits."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from opkit.cli.console import Console, Progress
from opkit.errors import UsageError

if TYPE_CHECKING:
    from opkit.cli.parts import OpenProject
    from opkit.executor import Executor
    from opkit.schema import OpSpec
    from opkit.testing import (
        Case,
        CaseResult,
        FuzzBudget,
        FuzzResult,
        Golden,
        PrecisionReport,
        Setup,
        Standard,
    )
    from opkit.toolchain import Artifact, Project

__all__ = [
    "Fuzz",
    "Run",
    "explain",
    "refuse_for_trees",
    "run_determinism",
    "tell_references",
]


@dataclass(frozen=True)
class Run:
    """A built project and how its cases are judged."""

    project: Project
    golden: Golden | None
    artifact: Artifact
    standards: Mapping[str, Standard]
    asked: str | None
    """The standard that the user named."""
    reference: str
    """The reference that the user gave for all cases."""
    seed: int
    executor: Executor
    pictures: bool
    keep: int
    timeout_seconds: float
    """How long a launch may go on without progress; 0: for ever."""
    inaccuracy_seed: int
    """See `runtime.Configuration`."""
    allow_raw_writes: bool

    def report(self, cases: tuple[Case, ...], console: Console) -> PrecisionReport:
        """Run the cases, here or in processes, and return their verdicts."""
        from opkit.testing import run_on

        options = ("--standard", self.asked) if self.asked else ()
        if self.reference:
            options = (*options, "--golden", self.reference)
        if self.inaccuracy_seed == 0:
            options = (*options, "--rounded")
        setup = self.setup
        with console.progress("test", len(cases)) as bar:

            def advance(result: CaseResult) -> None:
                bar.advance(result.case.name)

            return run_on(
                self.executor, setup, cases, seed=self.seed, options=options, progress=advance
            )

    @property
    def setup(self) -> Setup:
        """What a process needs that runs cases."""
        from opkit.testing import Setup

        return Setup(
            self.project,
            self.artifact.folder,
            self.artifact.chip.name,
            self.asked,
            pictures=self.pictures,
            keep=self.keep,
            timeout_seconds=self.timeout_seconds,
            threads=_threads(self.executor),
            inaccuracy_seed=self.inaccuracy_seed,
            allow_raw_writes=self.allow_raw_writes,
            together=_is_here(self.executor),
        )

    def with_reruns(self, report: PrecisionReport, opened: OpenProject) -> PrecisionReport:
        """Return a report that says of failing cases what runs of them again show."""
        from opkit.executor import LocalExecutor
        from opkit.testing import cases_work, kept_result, with_reruns

        setup = self.setup

        def alone(case: Case) -> CaseResult:
            with LocalExecutor(1).open(cases_work(setup)) as crew:
                return kept_result(case, next(result for _, result in crew.stream([case])))

        return with_reruns(
            report,
            changes=lambda case: self._changes(setup, case, opened),
            alone=alone,
            asks_alone=opened.is_tree,
        )

    def _changes(self, setup: Setup, case: Case, opened: OpenProject) -> str:
        """Return how a case's result changes from run to run, and what the checks say of it."""
        from opkit.cli.parts import run_checks
        from opkit.executor import Lost
        from opkit.sanitizer import CheckSettings, finding_text
        from opkit.testing import CHANGES, repeats_work

        with self.executor.open(repeats_work(setup)) as crew:
            found = next(result for _, result in crew.stream([case]))
        if isinstance(found, Lost) or not found.differences:
            return ""
        lines = [f"{CHANGES}: {found.differences[0]}"]
        settings = CheckSettings(("racecheck",))
        checked, _ = run_checks(
            opened, (case,), settings, self.timeout_seconds, lambda name: None, others=False
        )
        for finding in checked.findings[:1]:
            lines += ["opkit check names the race:", finding_text(finding, checked.root)]
        if not checked.findings:
            lines.append(
                "opkit check finds no race in it: look for what its host code or kernel keeps from"
                " one launch to the next, or for atomic sums, whose order is open"
            )
        return "\n".join(lines)

    def with_other_cases(self, report: PrecisionReport, console: Console) -> PrecisionReport:
        """Return a report with cases in place of those that the operator's host code refuses."""
        from opkit.testing import with_other_cases

        def run(cases: tuple[Case, ...]) -> PrecisionReport:
            return self.report(cases, console)

        return with_other_cases(self.project, report, run, reference=self.reference, seed=self.seed)


def refuse_for_trees(
    project: Project, *, pairwise: bool, edge_values: bool, fuzz: str | None
) -> None:
    """Refuse the ways of making cases that need a prototype.

    Raises:
        UsageError: one of them was asked for.
    """
    asked = {"--pairwise": pairwise, "--edge-values": edge_values, "--fuzz": fuzz is not None}
    for option, wanted in asked.items():
        if wanted:
            raise UsageError(
                f"{project.name} has no prototype, only OpDefs, from which {option} makes no cases",
                help="write the cases into its tests/cases.yaml: docs/cases.md",
            )


def tell_references(cases: Sequence[Case], console: Console) -> None:
    """Say which expressions the results of cases are compared with, each once.

    What a function computes that stands for an operator's documents is said in words behind it.
    """
    from opkit.testing import formulas_of, is_expression

    told = dict.fromkeys((case.kernel, case.golden) for case in cases if case.golden)
    for kernel, golden in told:
        if is_expression(golden):
            said = "".join(f"  # {formula}" for formula in formulas_of(golden))
            console.status("golden", f"{kernel}: {golden}{said}")


def _threads(executor: Executor) -> int:
    """Return the host threads of a launch: 0, all cores, where nothing else runs beside it."""
    return 0 if executor.workers == 1 else 1


def _is_here(executor: Executor) -> bool:
    """Return whether cases run in this process, where a debugger is to stop in kernels too."""
    from opkit.executor import HereExecutor

    return isinstance(executor, HereExecutor)


def explain(run: Run, report: PrecisionReport, console: Console) -> dict[str, str]:
    """Return why each case that misses its standard does, by its name."""
    from opkit.executor import LocalExecutor, Lost
    from opkit.testing import Verdict, explanations_work

    failing = [r.case for r in report.results if r.verdict is Verdict.FAIL and r.outputs]
    texts = {}
    # Kernels run there: what comes out of it is text.
    work = explanations_work(run.setup)
    with console.progress("explain", len(failing)) as bar, LocalExecutor(1).open(work) as crew:
        for index, found in crew.stream(failing):
            name = failing[index].name
            texts[name] = f"  not explained: {found}" if isinstance(found, Lost) else found
            bar.advance(name)
    return {case.name: texts[case.name] for case in failing}


@dataclass(frozen=True)
class Fuzz:
    """A built project, and how long to look for failing cases."""

    project: Project
    golden: Golden | None
    artifact: Artifact
    asked: str | None
    """The standard that the user named."""
    budget: FuzzBudget
    seed: int
    timeout_seconds: float
    inaccuracy_seed: int
    """See `runtime.Configuration`."""
    allow_raw_writes: bool

    def run(self, op: str | None, executor: Executor, console: Console) -> None:
        """Look for a failing case of each operator; save the smallest, exit 1 if there is one."""
        from opkit.testing import (
            CASE_FILES,
            Setup,
            cases_work,
            chosen_operators,
            fuzz,
            kept_result,
            save_case,
            shape_rules,
        )

        project, chip = self.project, self.artifact.chip.name
        specs = chosen_operators(project, op)
        rules = shape_rules(specs, self.golden)
        threads = _threads(executor)
        setup = Setup(
            project,
            self.artifact.folder,
            chip,
            self.asked,
            timeout_seconds=self.timeout_seconds,
            threads=threads,
            inaccuracy_seed=self.inaccuracy_seed,
            allow_raw_writes=self.allow_raw_writes,
            together=_is_here(executor),
        )
        results: list[tuple[OpSpec, FuzzResult]] = []
        with executor.open(cases_work(setup)) as crew:

            def launch(case: Case) -> CaseResult:
                return next(launch_all([case]))

            def launch_all(cases: Sequence[Case]) -> Iterator[CaseResult]:
                # In the order of the cases, as soon as those before have come.
                waiting: dict[int, CaseResult] = {}
                due = 0
                for index, result in crew.stream(cases):
                    waiting[index] = kept_result(cases[index], result)
                    while due in waiting:
                        yield waiting.pop(due)
                        due += 1

            for spec in specs:
                with console.progress(spec.name, self.budget.cases or 0) as bar:
                    result = fuzz(
                        spec,
                        launch,
                        budget=self.budget,
                        seed=self.seed,
                        shape_rule=rules[spec.name],
                        run_many=launch_all,
                        progress=functools.partial(_advance, bar),
                    )
                results.append((spec, result))
        failures = [result.failure for _, result in results if result.failure is not None]
        path = project.folder / CASE_FILES[0]
        for failure in failures:
            save_case(path, failure.case)
            console.status("saved", f"{failure.case.name} in {path}")
        _show_fuzz(project, results, self.seed, console)
        if failures:
            raise click.exceptions.Exit(1)


def _advance(bar: Progress, runs: int) -> None:
    bar.advance(f"{runs} runs")


def _show_fuzz(
    project: Project, results: list[tuple[OpSpec, FuzzResult]], seed: int, console: Console
) -> None:
    from opkit.testing import PrecisionReport, failure_text, report_object

    reports = []
    for spec, result in results:
        failures = () if result.failure is None else (result.failure,)
        report = PrecisionReport(project.name, spec.name, seed, failures)
        reports.append((spec, result, report))
        if result.failure is None:
            console.result(f"{spec.name}: {result.runs} runs, none failed")
            continue
        console.result(failure_text(result.failure, report))
        sources = [source for source in result.failure.case.sources if source is not None]
        for name, source in zip(result.failure.case.input_names, sources, strict=False):
            if source.values is not None:
                console.result(f"  {name} = {list(source.values)}")
        console.result(f"{spec.name}: {result.runs} runs, the smallest failing case is above")
    if console.json:
        console.emit_json(
            {
                spec.name: {
                    "runs": result.runs,
                    "failure": _without_times(report_object(report)) if result.failure else None,
                }
                for spec, result, report in reports
            }
        )


def _without_times(report: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the cases of a report; what this machine took for them is no part of what is found."""
    return [
        {name: value for name, value in case.items() if name != "seconds"}
        for case in report["cases"]
    ]


def run_determinism(run: Run, cases: tuple[Case, ...], console: Console) -> None:
    """Compare each case's bits over repeats, threads and block orders; exit 1 where they differ."""
    from opkit.executor import LocalExecutor, Lost
    from opkit.testing import SETTINGS, DeterminismResult, repeats_work

    project = run.project
    found: dict[int, DeterminismResult] = {}
    work = repeats_work(run.setup, SETTINGS)
    with console.progress("compare", len(cases)) as bar, LocalExecutor(1).open(work) as crew:
        for index, result in crew.stream(cases):
            case = cases[index]
            if isinstance(result, Lost):
                result = DeterminismResult(case, 0, "", (), str(result))
            found[index] = result
            bar.advance(case.name)
    results = [found[index] for index in sorted(found)]
    if console.json:
        console.emit_json([{"passed": result.passed, **vars(result)} for result in results])
    differing = [result for result in results if not result.passed]
    for result in differing:
        console.result(f"{result.case.name}: " + (result.message or "differs"))
        for difference in result.differences:
            console.result(f"  {difference}")
    runs = max((result.runs for result in results), default=0)
    same = len(results) - len(differing)
    console.result(
        f"{project.name}: {same} of {len(results)} cases give the same bits in {runs} launches"
        " each: repeats, threads, block orders"
    )
    if differing:
        console.result("atomics add in the order in which blocks come: their sums may differ")
        raise click.exceptions.Exit(1)
