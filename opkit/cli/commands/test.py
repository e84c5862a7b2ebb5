"""`opkit test`: a project's results against its golden."""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from opkit.cli.completion import complete_case, complete_standard
from opkit.cli.console import Console, common_options, write_text
from opkit.cli.options import (
    case_options,
    chip_option,
    chosen_executor,
    executor_option,
    expression_option,
    raw_writes_option,
    seed_option,
    timeout_option,
)
from opkit.cli.parts import choose_cases, open_project

if TYPE_CHECKING:
    from opkit.executor import Executor
    from opkit.testing import PrecisionReport, Untaken

__all__ = ["command"]

_TONES = {
    "pass": "good",
    "pass (cancellation)": "warn",
    "pass (range)": "warn",
    "pass (half precision)": "warn",
    "pass (behind a tensor)": "warn",
    "refused": "warn",
    "data type refused": "warn",
    "no reference given": "warn",
}


@click.command("test", short_help="Check an operator's results against its golden.")
@click.argument("project", required=False, type=click.Path(path_type=Path))
@expression_option("cases whose name", "float16 and not 1000003")
@click.option(
    "--case",
    "names",
    multiple=True,
    metavar="NAME",
    shell_complete=complete_case,
    help="Only this case, repeatable.",
)
@click.option("--last-failed", is_flag=True, help="Only what failed last time; all if nothing did.")
@click.option("--op", metavar="NAME", help="Only this operator; all of the project by default.")
@case_options()
@click.option(
    "--pairwise",
    is_flag=True,
    help="Every pair of data type, shape class, kind of values and attribute, not the usual cases.",
)
@click.option("--edge-values", is_flag=True, help="Also test zeros, extremes, infinities and NaN.")
@click.option(
    "--fuzz",
    metavar="N|SECONDS",
    help="Random cases: 200 of them, or for 30s or 5m. A failure is shrunk and saved as a case.",
)
@click.option(
    "--standard",
    metavar="NAME",
    shell_complete=complete_standard,
    help="The precision standard, the project's own by default; a wrong name lists them.",
)
@click.option(
    "--explain",
    is_flag=True,
    help="Say of failing cases whether the algorithm or the precision is at fault, and where.",
)
@click.option(
    "--determinism",
    is_flag=True,
    help="Instead of judging: the same bits on repeats, thread counts and block orders?",
)
@seed_option()
@click.option(
    "--rounded",
    is_flag=True,
    help="Round Rsqrt and Reciprocal correctly. They have errors as large as their pages state "
    "otherwise: 1/1000 in half, 1/10000 in float.",
)
@click.option(
    "-j",
    "--jobs",
    type=click.IntRange(min=1),
    metavar="N",
    help="Processes that run cases; this one alone by default.",
)
@executor_option("Cases")
@click.option(
    "--junit",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Also write the report as JUnit XML.",
)
@click.option(
    "--html",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Also write the report as one HTML file, with the errors drawn.",
)
@click.option(
    "--st-report",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="FOLDER",
    help="Also write msOpST's st_report.json and error CSVs.",
)
@raw_writes_option()
@timeout_option()
@chip_option("test on")
@common_options
def command(
    *,
    project: Path | None,
    expression: str | None,
    names: tuple[str, ...],
    last_failed: bool,
    op: str | None,
    files: tuple[Path, ...],
    reference: str,
    pairwise: bool,
    edge_values: bool,
    fuzz: str | None,
    standard: str | None,
    explain: bool,
    determinism: bool,
    seed: int,
    rounded: bool,
    jobs: int | None,
    executor: str | None,
    junit: Path | None,
    html: Path | None,
    st_report: Path | None,
    into: Path | None,
    allow_raw_writes: bool,
    timeout: float,
    chip: str,
    console: Console,
) -> None:
    """Check an operator's results against its golden.

    PROJECT is its folder, or any folder inside it; the working directory by default. It is built
    first where needed. Cases are generated, and those of tests/cases.yaml are added. Exits 1
    unless every case passes; one without a reference does not.

    An operator without a prototype, which only its OpDef describes, is compared with the function
    of PyTorch that has its name, on shapes that do not divide evenly into tiles. Another reference
    comes from --golden, or from golden: in the operator's tests/cases.yaml.

    Example: opkit test gelu_custom -k "float16 and not 1000003"
    """
    from opkit.cli.commands import _test_modes as modes
    from opkit.testing import ERROR_ROWS, operator_standards, read_budget, remember_failures
    from opkit.toolchain import load_project

    named = load_project(project)
    if named.tree is not None:
        modes.refuse_for_trees(named, pairwise=pairwise, edge_values=edge_values, fuzz=fuzz)
    opened = open_project(named, chip, console, into=into, files=files, reference=reference)
    found, golden, notes = opened.project, opened.golden, opened.notes
    standards = operator_standards(found.root, found.operators, standard=standard)
    workers = _executor(executor, jobs)
    if fuzz is not None:
        budget = read_budget(fuzz)
        hunt = modes.Fuzz(
            *(found, golden, opened.build(), standard, budget, seed, timeout),
            inaccuracy_seed=0 if rounded else seed + 1,
            allow_raw_writes=allow_raw_writes,
        )
        hunt.run(op, workers, console)
        return
    pool = opened.pool(
        op,
        seed=seed,
        edge_values=edge_values,
        pairwise=pairwise,
        names=names,
        last_failed=last_failed,
    )
    untaken: tuple[Untaken, ...] = ()
    if not (names or pairwise):
        pool, untaken = opened.with_every_branch(pool, op, seed=seed)
    cases = choose_cases(found, pool, expression, names, notes if last_failed else None)
    artifact = opened.build()
    modes.tell_references(cases, console)
    run = modes.Run(
        project=found,
        golden=golden,
        artifact=artifact,
        standards=standards,
        asked=standard,
        reference=reference,
        seed=seed,
        executor=workers,
        pictures=html is not None,
        keep=ERROR_ROWS if st_report is not None else 8,
        timeout_seconds=timeout,
        inaccuracy_seed=0 if rounded else seed + 1,
        allow_raw_writes=allow_raw_writes,
    )
    if determinism:
        modes.run_determinism(run, cases, console)
        return
    report = run.report(cases, console)
    if opened.is_tree and not (expression or names or files or last_failed):
        report = run.with_other_cases(report, console)
    report = run.with_reruns(report, opened)
    report = replace(report, untaken=untaken)
    explanations = modes.explain(run, report, console) if explain else {}
    remember_failures(notes, report)
    _write(report, explanations, junit, html, st_report, console)
    _show(report, explanations, console)
    if not report.passed:
        raise click.exceptions.Exit(1)


def _executor(text: str | None, jobs: int | None) -> Executor:
    # Never this process, unless asked: a kernel, host code or golden that ends its process would
    # end the count of the verdicts with it.
    return chosen_executor(text, jobs or (1 if text is None else None))


def _write(
    report: PrecisionReport,
    explanations: dict[str, str],
    junit: Path | None,
    html: Path | None,
    st_report: Path | None,
    console: Console,
) -> None:
    from opkit.cli.parts import made_text
    from opkit.testing import html_report, junit_xml, write_st_report

    if junit is not None:
        write_text(junit, junit_xml(report))
        console.status("wrote", str(junit))
    if html is not None:
        write_text(html, html_report(report, tuple(explanations.items()), made=made_text()))
        console.status("wrote", str(html))
    if st_report is not None:
        write_st_report(st_report, report, sys.argv)
        console.status("wrote", str(st_report / "st_report.json"))


def _show(report: PrecisionReport, explanations: dict[str, str], console: Console) -> None:
    from opkit.testing import (
        CASE_COLUMNS,
        Verdict,
        cancellation_texts,
        case_rows,
        counts_text,
        report_object,
    )

    if console.json:
        document = report_object(report)
        if explanations:
            document["explanations"] = explanations
        console.emit_json(document)
        return
    rows = [
        (*row[:-1], console.styled(row[-1], _TONES.get(row[-1], "bad")))
        for row in case_rows(report)
    ]
    if not console.quiet:
        console.table(CASE_COLUMNS, rows, right=("elements", "limit"))
    for text in (*cancellation_texts(report), *_failures(report, explanations)):
        console.result(f"\n{text}")
    cases = f"{len(report.results)} cases by the {report.standard} standard"
    console.result(f"\n{report.project}: {cases}: {counts_text(report)}")
    for one in report.untaken:
        console.result(f"not tested: {one}; give one a shape that does: docs/cases.md")
    if report.count(Verdict.NO_REFERENCE):
        console.result("no reference given is not a pass: give the op a formula, or a golden")


def _failures(report: PrecisionReport, explanations: dict[str, str]) -> list[str]:
    """Return the text of every failing case; those that say the same share one."""
    from opkit.testing import Verdict, failure_text

    same = Counter((r.case.kernel, r.verdict, r.message) for r in report.results if r.message)
    texts = []
    told: set[tuple[str, Verdict, str]] = set()
    for result in report.results:
        key = (result.case.kernel, result.verdict, result.message)
        if (result.verdict.passed and not result.message) or (result.message and key in told):
            continue
        told.add(key)
        if result.verdict is Verdict.NO_REFERENCE:
            texts.append(f"{result.case.kernel}: no reference given\n  {result.message}")
            continue
        explanation = explanations.get(result.case.name, "")
        more = f"\n  the same in {same[key] - 1} more cases" if same[key] > 1 else ""
        text = failure_text(result, report)
        texts.append(f"{text}{more}" + (f"\n{explanation}" if explanation else ""))
    return texts
