"""`opkit profile`: time an operator, a program or a script on the modelled chip."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from opkit.chips import DEFAULT_CHIP
from opkit.cli.completion import complete_chip
from opkit.cli.console import Console, common_options
from opkit.cli.options import (
    FiniteRange,
    ProgramBehindDashes,
    case_options,
    output_option,
    parse_shape,
    raw_writes_option,
    timeout_option,
)
from opkit.cli.parts import Outputs, model_of, show_difference, show_fault, show_timelines
from opkit.dtypes import find_dtype
from opkit.errors import KernelFault, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from opkit.cli.parts import OpenProject
    from opkit.profiling import Timeline
    from opkit.schema import OpSpec
    from opkit.testing import Case
    from opkit.toolchain import Project

__all__ = ["chosen_operator", "chosen_variant", "command", "usual_cases"]


@click.command(
    "profile",
    cls=ProgramBehindDashes,
    short_help="Time an operator on the modelled chip, pipe by pipe.",
)
@click.argument(
    "project",
    required=False,
    type=click.Path(path_type=Path),
    metavar="[PROJECT | -- PROGRAM ARGUMENTS]",
)
@click.option("--op", metavar="NAME", help="The operator; the project's first by default.")
@click.option(
    "--shape",
    metavar="SHAPE",
    help="Sizes of the inputs joined by x; 1048576, or 2048x4096 for row-wise ops.",
)
@click.option(
    "--case",
    "case_name",
    metavar="NAME",
    help="A case of `opkit test`, also of tests/cases.yaml, in place of --shape and --dtype.",
)
@case_options()
@click.option(
    "--dtype",
    metavar="DTYPE",
    help="The dtype of the first input; the prototype's first by default.",
)
@click.option(
    "--kernel",
    metavar="NAME",
    help="Profile only launches of this kernel of a program; * and ? match anything.",
)
@click.option(
    "-c",
    "--chip",
    shell_complete=complete_chip,
    metavar="CHIP",
    help=f'The chip to model, {DEFAULT_CHIP} for projects; "opkit targets" lists them.',
)
@output_option("--html", "one page with timeline, source, roofline, memory and cores")
@output_option("--trace", "a Chrome trace, which ui.perfetto.dev opens")
@click.option(
    "--csv",
    "csv_folder",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Also write the CSV files of msprof op, with its names, into this folder; of a program"
    " also operator_summary.csv and kernel_details.csv, over all launches.",
)
@click.option(
    "--diff",
    type=(click.Path(path_type=Path), click.Path(path_type=Path)),
    metavar="A B",
    help="Compare two files of --json, with --html side by side; exit 1 if B is slower.",
)
@click.option(
    "--limit",
    type=FiniteRange(0),
    default=2.0,
    show_default=True,
    metavar="PERCENT",
    help="With --diff: how much slower B may be.",
)
@click.option(
    "--events",
    type=click.IntRange(min=0),
    default=200_000,
    show_default=True,
    metavar="N",
    help="Instructions that trace and page keep at the most; totals count all.",
)
@click.option(
    "--lines",
    type=click.IntRange(min=0),
    default=8,
    show_default=True,
    metavar="N",
    help="Source lines to list.",
)
@raw_writes_option()
@click.option(
    "--timing-only",
    is_flag=True,
    help="Run what steers the kernel and compute no tensors: the same time, sooner; an error where"
    " a scalar reads what was not computed.",
)
@timeout_option()
@common_options
def command(
    *,
    project: Path | None,
    program: tuple[str, ...],
    op: str | None,
    shape: str | None,
    case_name: str | None,
    files: tuple[Path, ...],
    reference: str,
    into: Path | None,
    dtype: str | None,
    kernel: str | None,
    chip: str | None,
    html: Path | None,
    trace: Path | None,
    csv_folder: Path | None,
    diff: tuple[Path, Path] | None,
    limit: float,
    events: int,
    lines: int,
    allow_raw_writes: bool,
    timing_only: bool,
    timeout: float,
    console: Console,
) -> None:
    """Time an operator on the modelled chip, pipe by pipe.

    PROJECT is its folder, or any folder inside it; the working directory by default. It is built
    first where needed, launched once, and timed by a model of the chip: no time printed here was
    measured. docs/profile.md says how far the model is from published measurements. Behind "--"
    stands a program that "opkit cc" has linked, or a Python script, with its arguments: each launch
    is timed, the longest is shown.

    Example: opkit profile gelu_custom --shape 1048576 --html gelu.html

    Example: opkit profile -- ./add 1024

    Example: opkit profile --diff before.json after.json --limit 5
    """
    if diff is not None:
        _refuse(project or program or op or shape, "--diff compares two files and runs nothing")
        if show_difference(*diff, limit, lines, html, console):
            raise click.exceptions.Exit(1)
        return
    outputs = Outputs(html, trace, csv_folder, has_operators=bool(program))
    from opkit import runtime

    if program:
        of_projects = op or shape or dtype or files or reference or into
        _refuse(project or of_projects, "a program is profiled as it is")
        how = _How(events, timing_only, allow_raw_writes)
        code = _profile_program(program, kernel, chip, how, timeout, outputs, lines, console)
        if code != 0:
            console.warn(f"{program[0]} itself ended with code {code}")
            raise click.exceptions.Exit(1)
        return
    if project is not None and project.is_file():
        raise UsageError(
            f"{project} is a file, and a project is a folder",
            help=f'for a program or script write "opkit profile -- {project}"',
        )
    if case_name is not None and (shape or dtype):
        raise UsageError("--case has its own shape and dtype", help="leave --shape and --dtype out")
    wanted = _Wanted(project, op, shape, dtype, chip, case_name, files, reference, into)
    runtime.configure(allow_raw_writes=allow_raw_writes)
    with runtime.time_limit(timeout):
        _profile_project(
            wanted, _How(events, timing_only, allow_raw_writes), outputs, lines, console
        )


@dataclass(frozen=True)
class _How:
    """How launches are timed."""

    event_limit: int
    timing_only: bool
    allow_raw_writes: bool


@dataclass(frozen=True)
class _Wanted:
    """The launch that the user asked for."""

    project: Path | None
    op: str | None
    shape: str | None
    dtype: str | None
    chip: str | None
    case_name: str | None
    files: tuple[Path, ...]
    reference: str
    into: Path | None


def _refuse(given: object, why: str) -> None:
    if given:
        raise UsageError(f"{why}: PROJECT, --op, --shape and --dtype say what to launch")


def _profile_program(
    program: tuple[str, ...],
    kernel: str | None,
    chip: str | None,
    how: _How,
    timeout: float,
    outputs: Outputs,
    lines: int,
    console: Console,
) -> int:
    from opkit import runtime, torch_npu, triton
    from opkit.chips import find_chip
    from opkit.profiling import profile_program, profile_script

    path = Path(program[0])
    name = find_chip(chip).name if chip is not None else None
    model = None
    console.command_line(program)
    script = runtime.find_script(path)
    if script is not None:
        if not script.is_file():
            raise UsageError(f"{path}: there is no such script")
        torch_npu.offer()
        triton.offer()
        runtime.configure(name, allow_raw_writes=how.allow_raw_writes)
        with runtime.time_limit(timeout), torch_npu.Watch() as watch:
            timelines, code = profile_script(
                script,
                program[1:],
                kernel=kernel or "*",
                event_limit=how.event_limit,
                timing_only=how.timing_only,
                places=watch.places,
            )
        model = model_of(timelines, watch.cpu_calls)
    else:
        timelines, code = profile_program(
            path,
            program[1:],
            chip=name,
            kernel=kernel or "*",
            event_limit=how.event_limit,
            timing_only=how.timing_only,
            quiet_stdout=console.json,
            allow_raw_writes=how.allow_raw_writes,
            timeout_seconds=timeout,
        )
    show_timelines(path.name, timelines, outputs, lines, console, model)
    return code


def _profile_project(
    wanted: _Wanted, how: _How, outputs: Outputs, lines: int, console: Console
) -> None:
    from opkit.chips import find_chip
    from opkit.cli.parts import open_project
    from opkit.toolchain import load_project

    opened = open_project(
        load_project(wanted.project),
        find_chip(wanted.chip or DEFAULT_CHIP).name,
        console,
        into=wanted.into,
        files=wanted.files,
        reference=wanted.reference,
    )
    cases = _cases(opened, wanted)
    launch = _launcher(opened, how, console)
    if wanted.shape is not None or wanted.case_name is not None:
        case, timelines = cases[0], launch(cases[0])
    else:
        case, timelines = opened.first_taken(cases, launch, largest_first=True)
    show_timelines(case.name, timelines, outputs, lines, console)


def chosen_operator(project: Project, op: str | None) -> OpSpec:
    """Return an operator by its class or snake_case name; the first where none is named."""
    from opkit.schema import nearest

    if op is None:
        return project.operators[0]
    for spec in project.operators:
        if op in (spec.op, spec.name):
            return spec
    names = [spec.name for spec in project.operators]
    near = nearest(op, names)
    raise UsageError(
        f'{project.name} has no operator "{op}"',
        help=f'did you mean "{near}"?' if near else "it has " + ", ".join(names),
    )


def _cases(opened: OpenProject, wanted: _Wanted) -> tuple[Case, ...]:
    """Return the launch to time: a case of the tests, or one shape by the project's own rules."""
    if wanted.case_name is not None:
        return (opened.named_case(wanted.case_name, wanted.op),)
    if wanted.shape is not None:
        spec = chosen_operator(opened.project, wanted.op)
        variant = chosen_variant(spec, wanted.dtype)
        return (opened.case_of_shape(spec, parse_shape(wanted.shape), variant),)
    return usual_cases(opened, wanted.op, wanted.dtype)


def usual_cases(opened: OpenProject, op: str | None, dtype: str | None) -> tuple[Case, ...]:
    """Return what is timed where no shape is asked for: the largest that the operator takes.

    A usual shape, of the first operator. Where a file's cases are all that there are, or OpDefs
    alone describe the operators, the cases of the tests.
    """
    from opkit.cli.parts import choose_cases
    from opkit.testing import replaces_generated_cases, usual_shape

    project = opened.project
    spec = chosen_operator(project, op)
    variant = chosen_variant(spec, dtype)
    is_listed = bool(opened.files) or replaces_generated_cases(project)
    if not opened.is_tree and (not is_listed or (dtype and not opened.files)):
        rule = opened.golden.shape_rule(spec) if opened.golden is not None else None
        return (opened.case_of_shape(spec, usual_shape(spec, shape_rule=rule), variant),)
    pool = opened.pool(op if is_listed else spec.name)
    cases = tuple(case for case in pool if not case.expects_failure)
    if dtype:
        cases = tuple(case for case in cases if case.dtypes[0] == spec.variant_dtypes(variant)[0])
    return choose_cases(project, cases, None, (), None)


def chosen_variant(spec: OpSpec, dtype: str | None) -> int:
    """Return the variant whose first tensor has a data type; the first where none is named."""
    if dtype is None:
        return 0
    wanted = find_dtype(dtype)
    firsts = [spec.variant_dtypes(i)[0] for i in range(spec.variant_count)]
    if wanted is not None and wanted in firsts:
        return firsts.index(wanted)
    raise UsageError(
        f'{spec.op} has no variant whose first tensor is "{dtype}"',
        help="it has " + ", ".join(dict.fromkeys(row.name for row in firsts)),
    )


def _launcher(opened: OpenProject, how: _How, console: Console) -> Callable[[Case], list[Timeline]]:
    """Return what launches a case, and gives its timelines."""
    from opkit import runtime
    from opkit.profiling import Profile
    from opkit.testing import launch_of

    artifact = opened.build()
    runtime.configure(opened.chip)
    library = runtime.open(artifact.folder)
    specs = {spec.op: spec for spec in opened.project.operators}

    def launch(case: Case) -> list[Timeline]:
        ready = launch_of(case, specs[case.op])
        try:
            with Profile(
                event_limit=how.event_limit, lift_limits=True, timing_only=how.timing_only
            ) as session:
                ready(library)
        except KernelFault as err:
            if not console.json:
                raise
            show_fault(case.name, case.op, opened.chip, str(err), console)
            raise click.exceptions.Exit(1) from None
        if not session.timelines:
            raise UsageError(
                f"{case.name} launched no kernel, so there is nothing to time",
                help="give a shape with at least one element",
            )
        return list(session.timelines)

    return launch
