"""`opkit test`: a project's results against its golden."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from opkit.cli.console import Console, common_options, write_text
from opkit.cli.options import chip_option, expression_option, output_option, project_argument
from opkit.errors import UsageError

if TYPE_CHECKING:
    from opkit.testing import Case, Golden, PrecisionReport
    from opkit.toolchain import Project

__all__ = ["command"]

_TONES = {"pass": "good", "no reference given": "warn"}


@click.command("test", short_help="Check an operator's results against its golden.")
@project_argument()
@expression_option("cases whose name", "float16 and not 1000003")
@click.option("--op", metavar="NAME", help="Only this operator; all of the project by default.")
@click.option(
    "--standard",
    default="ecosystem",
    show_default=True,
    metavar="NAME",
    help="The precision standard; a wrong name lists them.",
)
@click.option(
    "--seed",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    metavar="N",
    help="Other values in the same cases.",
)
@click.option("--edge-values", is_flag=True, help="Also test zeros, extremes, infinities and NaN.")
@output_option("--junit", "the report as JUnit XML")
@chip_option("test on")
@common_options
def command(
    *,
    project: Path | None,
    expression: str | None,
    op: str | None,
    standard: str,
    seed: int,
    edge_values: bool,
    junit: Path | None,
    chip: str,
    console: Console,
) -> None:
    """Check an operator's results against its golden.

    PROJECT is its folder, or any folder inside it; the working directory by default. It is built
    first where needed. Exits 1 unless every case passes; one without a reference does not.

    Example: opkit test gelu_custom -k "float16 and not 1000003"
    """
    from opkit.testing import find_standard, load_golden
    from opkit.toolchain import load_project

    find_standard(standard)
    found = load_project(project)
    golden = load_golden(found.package_dir / "golden.py")
    cases = _cases(found, golden, op, expression, seed, edge_values)
    report = _run(found, golden, cases, standard, seed, chip, console)
    if junit is not None:
        from opkit.testing import junit_xml

        write_text(junit, junit_xml(report))
        console.status("wrote", str(junit))
    _show(report, console)
    if not report.passed:
        raise click.exceptions.Exit(1)


def _cases(
    project: Project,
    golden: Golden | None,
    op: str | None,
    expression: str | None,
    seed: int,
    edge_values: bool,
) -> tuple[Case, ...]:
    from opkit.testing import project_cases, select_cases

    cases = project_cases(project, golden=golden, op=op, seed=seed, edge_values=edge_values)
    chosen = cases if expression is None else select_cases(cases, expression)
    if not chosen:
        example = cases[0].name if cases else "none"
        raise UsageError(
            f"no case of {project.name} matches -k {expression!r}",
            help=f"names look like {example}",
        )
    return chosen


def _run(
    project: Project,
    golden: Golden | None,
    cases: tuple[Case, ...],
    standard: str,
    seed: int,
    chip: str,
    console: Console,
) -> PrecisionReport:
    from opkit import runtime
    from opkit.testing import run_cases
    from opkit.toolchain import build

    artifact = build(project, chip=chip, verbose=console.command_line, warn=console.warn)
    made = artifact.compiled + artifact.cached
    if made:
        console.status("built", f"{project.name}, {made} files in {artifact.seconds:.1f} s")
    # Poison: what the kernel never writes must not look like a right zero.
    runtime.configure(artifact.chip.name, poison=True)
    with console.progress("test", len(cases)) as bar:
        return run_cases(
            project,
            cases,
            library=runtime.open(artifact.folder),
            golden=golden,
            standard=standard,
            seed=seed,
            progress=lambda result: bar.advance(result.case.name),
        )


def _show(report: PrecisionReport, console: Console) -> None:
    from opkit.testing import CASE_COLUMNS, Verdict, case_rows, report_object

    if console.json:
        console.emit_json(report_object(report))
        return
    rows = [
        (*row[:-1], console.styled(row[-1], _TONES.get(row[-1], "bad")))
        for row in case_rows(report)
    ]
    if not console.quiet:
        console.table(CASE_COLUMNS, rows, right=("elements", "limit"))
    for text in _failures(report):
        console.result(f"\n{text}")
    counts = [f"{report.count(v)} {v.value}" for v in Verdict if report.count(v)]
    total = len(report.results)
    console.result(
        f"\n{report.project}: {total} cases by the {report.standard} standard: {', '.join(counts)}"
    )
    if report.count(Verdict.NO_REFERENCE):
        console.result("no reference given is not a pass: give the op a formula, or a golden")


def _failures(report: PrecisionReport) -> list[str]:
    """Return the text of every failing case; cases without a reference share one."""
    from opkit.testing import Verdict, failure_text

    texts = []
    told: set[str] = set()
    for result in report.results:
        if result.verdict is Verdict.NO_REFERENCE:
            if result.message not in told:
                told.add(result.message)
                texts.append(f"{result.case.kernel}: no reference given\n  {result.message}")
        elif result.verdict is not Verdict.PASS:
            texts.append(failure_text(result, report))
    return texts
