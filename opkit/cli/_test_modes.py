"""What `opkit test` does with its cases: run them, look for failing ones, compare their bits."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from opkit.cli.console import Console, Progress
from opkit.errors import UsageError

if TYPE_CHECKING:
    from opkit.schema import OpSpec
    from opkit.testing import (
        Case,
        CaseResult,
        DeterminismResult,
        FuzzResult,
        Golden,
        PrecisionReport,
        Setting,
        Standard,
    )
    from opkit.toolchain import Artifact, Project

__all__ = ["Run", "explain", "run_determinism", "run_fuzz"]


@dataclass(frozen=True)
class Run:
    """A built project and how its cases are judged."""

    project: Project
    golden: Golden | None
    artifact: Artifact
    standards: Mapping[str, Standard]
    asked: str | None
    """The standard that the user named."""
    seed: int
    jobs: int
    pictures: bool
    keep: int
    timeout_seconds: float
    """How long a launch may go on without progress; 0: for ever."""

    def report(self, cases: tuple[Case, ...], console: Console) -> PrecisionReport:
        """Run the cases, here or in processes, and return their verdicts."""
        from opkit import runtime
        from opkit.testing import Setup, run_cases, run_parallel

        options = ("--standard", self.asked) if self.asked else ()
        chip = self.artifact.chip.name
        with console.progress("test", len(cases)) as bar:

            def advance(result: CaseResult) -> None:
                bar.advance(result.case.name)

            if self.jobs > 1 and len(cases) > 1:
                setup = Setup(
                    self.project,
                    self.artifact.folder,
                    chip,
                    self.asked,
                    pictures=self.pictures,
                    keep=self.keep,
                    timeout_seconds=self.timeout_seconds,
                )
                return run_parallel(
                    setup,
                    cases,
                    jobs=self.jobs,
                    seed=self.seed,
                    options=options,
                    progress=advance,
                )
            # Poison: what the kernel never writes must not look like a right zero.
            runtime.configure(chip, poison=True)
            with runtime.time_limit(self.timeout_seconds):
                return run_cases(
                    self.project,
                    cases,
                    library=runtime.open(self.artifact.folder),
                    golden=self.golden,
                    standard=self.standards,
                    seed=self.seed,
                    pictures=self.pictures,
                    keep=self.keep,
                    options=options,
                    progress=advance,
                )


def explain(run: Run, report: PrecisionReport, console: Console) -> dict[str, str]:
    """Return why each case that misses its standard does, by its name."""
    from opkit import runtime
    from opkit.testing import (
        Verdict,
        case_standard,
        explain_case,
        explanation_text,
        find_reference,
    )

    failing = [r for r in report.results if r.verdict is Verdict.FAIL and r.outputs]
    runtime.configure(run.artifact.chip.name, poison=True)
    library = runtime.open(run.artifact.folder)
    specs = {spec.op: spec for spec in run.project.operators}
    texts = {}
    with console.progress("explain", len(failing)) as bar:
        for result in failing:
            case = result.case
            reference = find_reference(case, specs[case.op], run.golden, wants_second=False)
            assert reference is not None
            rule = case_standard(case, run.standards[case.kernel])
            try:
                found = explain_case(reference, library, rule)
                texts[case.name] = "\n".join(
                    explanation_text(one, run.project.folder) for one in found
                )
            except UsageError as error:
                texts[case.name] = f"  not explained: {error.message}"
            bar.advance(case.name)
    return texts


def run_fuzz(
    project: Project,
    golden: Golden | None,
    artifact: Artifact,
    standards: Mapping[str, Standard],
    budget_text: str,
    op: str | None,
    seed: int,
    console: Console,
) -> None:
    """Look for a failing case of each operator; save the smallest and exit 1 if there is one."""
    from opkit import runtime
    from opkit.testing import (
        CASE_FILES,
        chosen_operators,
        fuzz,
        read_budget,
        run_case,
        save_case,
        shape_rules,
    )

    budget = read_budget(budget_text)
    specs = chosen_operators(project, op)
    rules = shape_rules(specs, golden)
    runtime.configure(artifact.chip.name, poison=True)
    library = runtime.open(artifact.folder)
    results: list[tuple[OpSpec, FuzzResult]] = []
    for spec in specs:

        def launch(case: Case, spec: OpSpec = spec) -> CaseResult:
            return run_case(library, case, spec, golden, standards[spec.name])

        with console.progress(spec.name, budget.cases or 0) as bar:
            result = fuzz(
                spec,
                launch,
                budget=budget,
                seed=seed,
                shape_rule=rules[spec.name],
                progress=functools.partial(_advance, bar),
            )
        results.append((spec, result))
    failures = [result.failure for _, result in results if result.failure is not None]
    path = project.folder / CASE_FILES[0]
    for failure in failures:
        save_case(path, failure.case)
        console.status("saved", f"{failure.case.name} in {path}")
    _show_fuzz(project, results, seed, console)
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
                    "failure": report_object(report)["cases"] if result.failure else None,
                }
                for spec, result, report in reports
            }
        )


def run_determinism(
    project: Project, cases: tuple[Case, ...], artifact: Artifact, console: Console
) -> None:
    """Compare each case's bits over repeats, threads and block orders; exit 1 where they differ."""
    from opkit import runtime
    from opkit.testing import check_determinism

    chip = artifact.chip.name
    library = runtime.open(artifact.folder)

    def configure(setting: Setting) -> None:
        runtime.configure(chip, poison=True, threads=setting.threads, seed=setting.seed)

    results: list[DeterminismResult] = []
    with console.progress("compare", len(cases)) as bar:
        for case in cases:
            results.append(check_determinism(case, library, configure))
            bar.advance(case.name)
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
