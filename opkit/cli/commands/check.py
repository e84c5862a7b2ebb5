"""`opkit check`: memory, race, sync and queue bugs of a project's kernels."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from opkit.chips import DEFAULT_CHIP
from opkit.cli.completion import complete_chip
from opkit.cli.console import Console, common_options, write_text
from opkit.cli.options import (
    ProgramBehindDashes,
    case_options,
    chosen_executor,
    executor_option,
    expression_option,
    jobs_option,
    output_option,
    parse_shape,
    raw_writes_option,
    timeout_option,
)
from opkit.dtypes import find_dtype
from opkit.errors import UsageError

if TYPE_CHECKING:
    from opkit.cli.parts import OpenProject
    from opkit.executor import Executor
    from opkit.sanitizer import CheckReport, CheckSettings
    from opkit.testing import Case

__all__ = ["command"]


@click.command(
    "check",
    cls=ProgramBehindDashes,
    short_help="Find memory, race, sync and queue bugs in kernels.",
)
@click.argument(
    "project",
    required=False,
    type=click.Path(path_type=Path),
    metavar="[PROJECT | -- PROGRAM ARGUMENTS]",
)
@click.option(
    "--tool",
    "tools",
    multiple=True,
    metavar="NAME",
    help="Only this tool, repeatable; a wrong name lists them.",
)
@click.option("--op", metavar="NAME", help="Only this operator; all of the project by default.")
@click.option("--shape", metavar="SHAPE", help="Only this shape, sizes joined by x.")
@click.option("--dtype", metavar="DTYPE", help="Only variants whose first input has this dtype.")
@expression_option("cases whose name", "float16 and not 1000003")
@case_options()
@click.option(
    "--kernel",
    metavar="NAME",
    help="Only findings of kernels whose name this matches.",
)
@click.option(
    "--block", type=click.IntRange(min=0), metavar="N", help="Only findings of this block."
)
@click.option(
    "--witness",
    is_flag=True,
    help="Run launches with races again, in the order that loses, and show the wrong value.",
)
@click.option(
    "--unused",
    is_flag=True,
    help="Also device memory of a program that nothing reads or writes.",
)
@click.option(
    "--padding",
    is_flag=True,
    help="Also reads of what only rounds a tensor of global memory up to 32 bytes.",
)
@click.option(
    "--no-auto-sync",
    is_flag=True,
    help="Take the kernel as compiled with --cce-auto-sync=off: scalar accesses need flags, and "
    "vector instructions that depend on each other PipeBarrier<PIPE_V>.",
)
@click.option(
    "--suppressions",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    metavar="FILE",
    help="Known findings, one a line: CLASS [FILE[:LINE]].",
)
@click.option(
    "--write-baseline",
    "baseline",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Write what is found as a suppressions file, and exit 0.",
)
@output_option("--sarif", "the findings as SARIF, which code hosts show beside the lines")
@output_option("--junit", "the report as JUnit XML")
@output_option("--html", "one page with each finding beside its source lines")
@click.option(
    "--print-limit",
    type=click.IntRange(min=0),
    default=100,
    show_default=True,
    metavar="N",
    help="Findings to print at the most; files and JSON hold all.",
)
@click.option(
    "-c",
    "--chip",
    shell_complete=complete_chip,
    metavar="CHIP",
    help=f'The chip to check on, {DEFAULT_CHIP} for projects; "opkit targets" lists them.',
)
@raw_writes_option()
@timeout_option()
@click.option(
    "--mutate",
    is_flag=True,
    help="Score the checks and the tests on wrong versions of the project's kernels.",
)
@jobs_option("Mutants")
@executor_option("With --mutate: mutants")
@common_options
def command(
    *,
    project: Path | None,
    tools: tuple[str, ...],
    op: str | None,
    shape: str | None,
    dtype: str | None,
    expression: str | None,
    files: tuple[Path, ...],
    reference: str,
    into: Path | None,
    kernel: str | None,
    block: int | None,
    witness: bool,
    unused: bool,
    padding: bool,
    no_auto_sync: bool,
    suppressions: Path | None,
    baseline: Path | None,
    sarif: Path | None,
    junit: Path | None,
    html: Path | None,
    print_limit: int,
    chip: str | None,
    allow_raw_writes: bool,
    timeout: float,
    mutate: bool,
    jobs: int | None,
    executor: str | None,
    program: tuple[str, ...],
    console: Console,
) -> None:
    """Find memory, race, sync and queue bugs in kernels.

    PROJECT is its folder, or any folder inside it; the working directory by default. It is built
    first where needed, an ordinary build, and runs every case of opkit test under the checks.
    --mutate deletes or weakens each synchronisation of its kernels, shortens each copy and shifts
    each offset, one at a time in a scratch copy, and says which of these mutants a check or a test
    notices. Behind "--" stands a program that "opkit cc" has linked, or a Python script, with its
    arguments. Exits 1 when something is found; "opkit explain CLASS" explains a class.

    Example: opkit check gelu_custom --tool racecheck --sarif check.sarif

    Example: opkit check -- ./add 1024
    """
    from opkit.sanitizer import CheckSettings, baseline_text, chosen_tools, read_suppressions

    known = read_suppressions(suppressions) if suppressions is not None else None
    checks = CheckSettings(
        *(chosen_tools(tools), not no_auto_sync, block, kernel),
        witness=witness,
        padding=padding,
        suppressions=known,
        allow_raw_writes=allow_raw_writes,
    )
    settings = _Settings(checks, unused, chip, timeout)
    wanted = _Wanted(project, op, shape, dtype, expression, files, reference, into)
    if mutate:
        if program or shape or dtype or into:
            raise UsageError(
                "--mutate scores a project on its own cases, each mutant in a copy: --op, -k,"
                " --cases and --golden choose among them",
                help="leave out the program, --shape, --dtype and --into",
            )
        _mutate(wanted, settings, chosen_executor(executor, jobs), console)
        return
    if executor is not None:
        raise UsageError("--executor is for --mutate", help="leave it out, or add --mutate")
    if program:
        if wanted != _Wanted(None):
            raise UsageError(
                "a program is checked as it is: PROJECT, --op, --shape, --dtype, -k, --cases,"
                " --golden and --into say what to run of a project",
                help="leave them out",
            )
        report = _check_program(program, settings, console)
    else:
        if project is not None and project.is_file():
            raise UsageError(
                f"{project} is a file, and a project is a folder",
                help=f'for a program or script write "opkit check -- {project}"',
            )
        report = _check_project(wanted, settings, console)
    _write(report, sarif, junit, html, console)
    if baseline is not None:
        write_text(baseline, baseline_text(report.findings, report.root))
        console.status("wrote", str(baseline))
    _show(report, print_limit, console)
    if report.exit_code != 0:
        console.warn(f"{report.project} itself ended with code {report.exit_code}")
    if (not report.clean and baseline is None) or report.exit_code != 0:
        raise click.exceptions.Exit(1)


@dataclass(frozen=True)
class _Settings:
    """What is looked for, and on which chip."""

    checks: CheckSettings
    unused: bool
    chip: str | None
    timeout_seconds: float


@dataclass(frozen=True)
class _Wanted:
    """Which cases of a project are checked."""

    folder: Path | None
    op: str | None = None
    shape: str | None = None
    dtype: str | None = None
    expression: str | None = None
    files: tuple[Path, ...] = ()
    reference: str = ""
    into: Path | None = None


def _mutate(wanted: _Wanted, settings: _Settings, executor: Executor, console: Console) -> None:
    from opkit.cli.parts import mutate_project, show_mutation
    from opkit.toolchain import load_project

    options = {
        "--op": wanted.op,
        "-k": wanted.expression,
        "--chip": settings.chip,
        "--golden": wanted.reference or None,
    }
    arguments = [
        word for name, value in options.items() if value is not None for word in (name, value)
    ]
    for file in wanted.files:
        arguments += ["--cases", str(file.resolve())]
    project = load_project(wanted.folder)
    report = mutate_project(project, wanted.op, arguments, executor, console)
    show_mutation([report], console)


def _check_program(program: tuple[str, ...], settings: _Settings, console: Console) -> CheckReport:
    from opkit import runtime, torch_npu, triton
    from opkit.chips import find_chip
    from opkit.sanitizer import check_program, check_script

    path = Path(program[0])
    chip = find_chip(settings.chip).name if settings.chip is not None else None
    console.command_line(program)
    script = runtime.find_script(path)
    if script is not None:
        if not script.is_file():
            raise UsageError(f"{path}: there is no such script")
        runtime.configure(chip, allow_raw_writes=settings.checks.allow_raw_writes)
        torch_npu.offer()
        triton.offer()
        with runtime.time_limit(settings.timeout_seconds):
            return check_script(script, program[1:], settings=settings.checks)
    return check_program(
        path,
        program[1:],
        settings=settings.checks,
        unused=settings.unused,
        chip=chip,
        timeout_seconds=settings.timeout_seconds,
    )


def _check_project(wanted: _Wanted, settings: _Settings, console: Console) -> CheckReport:
    from opkit.cli.parts import open_project
    from opkit.toolchain import load_project

    if settings.unused:
        raise UsageError("--unused looks at the device memory of programs, and this is a project")
    opened = open_project(
        load_project(wanted.folder),
        settings.chip or DEFAULT_CHIP,
        console,
        into=wanted.into,
        files=wanted.files,
        reference=wanted.reference,
    )
    return _run(opened, wanted, _cases(opened, wanted), settings, console)


def _cases(opened: OpenProject, wanted: _Wanted) -> tuple[Case, ...]:
    """Return the cases of `opkit test`, or one shape of choice in every variant."""
    from opkit.cli.parts import choose_cases
    from opkit.testing import case_variants, chosen_operators

    project = opened.project
    if wanted.shape is not None:
        sizes = parse_shape(wanted.shape)
        cases = tuple(
            opened.case_of_shape(spec, sizes, variant)
            for spec in chosen_operators(project, wanted.op)
            for variant in case_variants(spec)
        )
    else:
        cases, _ = opened.with_every_branch(opened.pool(wanted.op, judged=False), wanted.op)
    guessed = sorted({case.op for case in cases if opened.is_guessed(case)})
    if guessed:
        opened.console.warn(
            f"{', '.join(guessed)}: without a reference all inputs have one shape; where they do"
            ' not belong together, give --golden "CALL" or tests/cases.yaml'
        )
    if wanted.dtype is not None:
        row = find_dtype(wanted.dtype)
        have = dict.fromkeys(case.dtypes[0].name for case in cases)
        cases = tuple(case for case in cases if case.dtypes[0] == row)
        if not cases:
            raise UsageError(
                f'{project.name} has no variant whose first tensor is "{wanted.dtype}"',
                help="it has " + ", ".join(have),
            )
    return choose_cases(project, cases, wanted.expression, (), None)


def _run(
    opened: OpenProject,
    wanted: _Wanted,
    cases: tuple[Case, ...],
    settings: _Settings,
    console: Console,
) -> CheckReport:
    from opkit.cli.parts import run_checks

    only = wanted.expression is not None or wanted.shape is not None
    with console.progress("check", len(cases)) as bar:
        report, refused = run_checks(
            opened,
            cases,
            settings.checks,
            settings.timeout_seconds,
            bar.advance,
            others=not only,
        )
    if refused:
        console.status("refused", f"{len(refused)} cases, by the operator's host code")
    return report


def _write(
    report: CheckReport,
    sarif: Path | None,
    junit: Path | None,
    html: Path | None,
    console: Console,
) -> None:
    import json

    import opkit
    from opkit.cli.parts import made_text
    from opkit.sanitizer import check_page, junit_xml, sarif_object

    if sarif is not None:
        log = sarif_object(report, version=opkit.__version__)
        write_text(sarif, json.dumps(log, indent=2) + "\n")
        console.status("wrote", str(sarif))
    if junit is not None:
        write_text(junit, junit_xml(report))
        console.status("wrote", str(junit))
    if html is not None:
        write_text(html, check_page(report, made=made_text()))
        console.status("wrote", str(html))


def _show(report: CheckReport, print_limit: int, console: Console) -> None:
    from opkit.sanitizer import finding_text, gap_text, report_object

    if console.json:
        console.emit_json(report_object(report))
        return
    findings = report.findings
    for finding in findings[:print_limit]:
        console.result(f"{finding_text(finding, report.root)}\n")
    if len(findings) > print_limit:
        console.result(f"{len(findings) - print_limit} more findings: raise --print-limit\n")
    for note in report.notes[:print_limit]:
        console.result(f"{finding_text(note, report.root)}\n")
    if len(report.notes) > print_limit:
        console.result(f"{len(report.notes) - print_limit} more notes: raise --print-limit\n")
    for gap in report.gaps:
        console.result(f"not checked: {gap_text(gap)}")
    hidden = f", {report.suppressed} suppressed" if report.suppressed else ""
    count = _counted(len(findings), "finding") if findings else "no findings"
    noted = f", {_counted(len(report.notes), 'note')}" if report.notes else ""
    cases = _counted(len(report.cases), "case")
    console.result(f"{report.project}: {cases}, {count}{noted}{hidden}")
    shown = (*findings, *report.notes)
    if shown:
        console.result(f'"opkit explain {shown[0].id}" tells what this class means')


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}" + ("" if count == 1 else "s")
