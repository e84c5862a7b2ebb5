"""`opkit tune`: search sizes and variants of kernels on the timing model."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from opkit.cli.console import Console, common_options
from opkit.cli.options import (
    ProgramBehindDashes,
    case_options,
    chip_option,
    executor_option,
    output_option,
    parse_shape,
    timeout_option,
)
from opkit.cli.parts import Search
from opkit.errors import UsageError

if TYPE_CHECKING:
    from opkit.cli.parts import OpenProject
    from opkit.testing import Case
    from opkit.toolchain import Artifact, Project
    from opkit.tuning import Budget

__all__ = ["command"]


@click.command(
    "tune",
    cls=ProgramBehindDashes,
    short_help="Search tile sizes, buffers and blocks on the timing model.",
)
@click.argument(
    "project",
    required=False,
    type=click.Path(path_type=Path),
    metavar="[PROJECT | PROGRAM.py[:FUNCTION] | -- PROGRAM ARGUMENTS]",
)
@click.option("--op", metavar="NAME", help="The operator; the project's first by default.")
@click.option(
    "--shape", "shapes", multiple=True, metavar="SHAPE", help="Sizes joined by x, repeatable."
)
@click.option(
    "--dtype", metavar="DTYPE", help="The dtype of the first input; the first by default."
)
@click.option(
    "--case",
    "case_name",
    metavar="NAME",
    help="A case of `opkit test` in place of --shape and --dtype.",
)
@case_options()
@click.option(
    "--size", "sizes", multiple=True, metavar="NAME=N", help="Of PROGRAM.py: a dimension."
)
@click.option(
    "--knob", "knobs", multiple=True, metavar="NAME=V,V", help="Other values to try, repeatable."
)
@click.option(
    "--constexpr",
    "constants",
    multiple=True,
    metavar="FILE:NAME=V,V",
    help="Values of a constexpr or #define in a program's source, repeatable.",
)
@click.option(
    "--field",
    "fields",
    multiple=True,
    metavar="FILE:NAME=V,V",
    help="Values that a program's source gives a field of the tiling data, repeatable.",
)
@click.option(
    "--build", "build_line", metavar="COMMAND", help="What makes a program of its source."
)
@click.option(
    "--verify", "verify_line", metavar="COMMAND", help="What says whether its result is right."
)
@click.option(
    "--budget",
    metavar="N|SECONDS",
    default="200",
    show_default=True,
    help="Candidates at the most, or how long: 30s, 5m.",
)
@click.option(
    "--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Of the search."
)
@click.option(
    "--standard", metavar="NAME", help="The precision standard; the project's by default."
)
@click.option(
    "--state",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Where measurements are kept, and gone on from; below build/opkit.tune by default.",
)
@click.option("--dry-run", is_flag=True, help="Write no tuning file.")
@output_option("--html", "a page that shows the landscape")
@executor_option("Candidates")
@timeout_option()
@chip_option("tune for")
@common_options
def command(
    *,
    project: Path | None,
    program: tuple[str, ...],
    op: str | None,
    shapes: tuple[str, ...],
    dtype: str | None,
    case_name: str | None,
    files: tuple[Path, ...],
    reference: str,
    into: Path | None,
    sizes: tuple[str, ...],
    knobs: tuple[str, ...],
    constants: tuple[str, ...],
    fields: tuple[str, ...],
    build_line: str | None,
    verify_line: str | None,
    budget: str,
    seed: int,
    standard: str | None,
    state: Path | None,
    dry_run: bool,
    html: Path | None,
    executor: str | None,
    timeout: float,
    chip: str,
    console: Console,
) -> None:
    """Search tile sizes, buffers and blocks on the timing model.

    PROJECT is built once more with a TilingFunc that takes sizes with each launch. Every candidate
    is run, timed by the model and verified against the golden; the best is also clean under opkit
    check, and never slower than what was there. The sizes go to op_host/<operator>_tuning.inc,
    which the generated TilingFunc reads. PROGRAM.py is what opkit compile takes. Behind "--" stands
    a program whose constants --constexpr and --field name. What was measured is kept: a run that
    was ended goes on where it stood. See docs/tuning.md.

    Example: opkit tune gelu_custom --shape 1048576 --html landscape.html

    Example: opkit tune --constexpr add.asc:TILE=1024,2048 -- ./add
    """
    from opkit.chips import find_chip
    from opkit.executor import open_executor

    search = Search(
        _budget(budget), seed, state, html, executor, timeout, find_chip(chip).name, dry_run
    )
    # Wrong words are told before anything is built.
    open_executor(executor or "local")
    of_projects = op or shapes or dtype or case_name or files or reference or into
    if program:
        if project is not None or of_projects or sizes:
            raise UsageError(
                "a program is tuned as it is: --constexpr and --field say what may change",
                help="leave PROJECT and what says how a project is launched out",
            )
        from opkit.cli.parts import program_subject_of

        subject, where = program_subject_of(
            program, constants, fields, build_line, verify_line, search, knobs
        )
        report = search.run(subject, where, console)
        search.show([report], console)
        return
    if constants or fields or build_line or verify_line:
        raise UsageError(
            "--constexpr, --field, --build and --verify are for programs",
            help='put the program behind "--": opkit tune --constexpr add.asc:TILE=1,2 -- ./add',
        )
    if project is not None and project.name.partition(":")[0].endswith(".py"):
        from opkit.cli.parts import tune_compiled

        if of_projects or standard:
            raise UsageError(
                "PROGRAM.py says its operators and types: --op, --shape, --dtype, --case, --cases,"
                " --golden, --into and --standard are for projects",
                help="give its named dimensions with --size",
            )
        tune_compiled(str(project), sizes, knobs, search, console)
        return
    if sizes:
        raise UsageError("--size is for PROGRAM.py", help="a project's shapes: --shape 2048x4096")
    if (case_name or files) and (shapes or dtype):
        raise UsageError(
            "cases have their own shape and dtype", help="leave --shape and --dtype out"
        )
    from opkit.cli.parts import open_project
    from opkit.toolchain import load_project

    opened = open_project(
        load_project(project), search.chip, console, into=into, files=files, reference=reference
    )
    if case_name is not None:
        cases = [opened.named_case(case_name, op)]
    elif files:
        cases = list(opened.pool(op))
    else:
        cases = [_case(opened, op, shape, dtype) for shape in shapes or (None,)]
    _tune_project(opened, cases, knobs, standard, search, console)


def _budget(text: str) -> Budget:
    from opkit.testing import read_budget
    from opkit.tuning import Budget

    found = read_budget(text, option="--budget")
    return Budget(found.cases, found.seconds)


def _tune_project(
    opened: OpenProject,
    cases: Sequence[Case],
    knobs: tuple[str, ...],
    standard: str | None,
    search: Search,
    console: Console,
) -> None:
    from opkit.toolchain import build
    from opkit.tuning import project_state, project_subject, save_project_row

    found = opened.project

    def make(copy: Project, out: Path) -> Artifact:
        artifact = build(
            copy, chip=search.chip, out=out, verbose=console.command_line, warn=console.warn
        )
        made = artifact.compiled + artifact.cached
        if made:
            console.status("built", f"{found.name}, {made} files in {artifact.seconds:.1f} s")
        return artifact

    reports = []
    if search.state is not None and len(cases) > 1:
        raise UsageError("--state is for one shape", help="leave it out: each shape has its own")
    for case in cases:
        subject = project_subject(
            found,
            case,
            chip=search.chip,
            build=make,
            knobs=knobs,
            standard=standard,
            timeout_seconds=search.timeout_seconds,
            into=opened.into,
        )
        report = search.run(subject, project_state(found, subject, opened.into), console)
        reports.append(report)
        if not search.dry_run:
            console.status("wrote", str(save_project_row(found, case, report)))
    search.show(reports, console)


def _case(opened: OpenProject, op: str | None, shape: str | None, dtype: str | None) -> Case:
    from opkit import runtime
    from opkit.cli.commands.profile import chosen_operator, chosen_variant, usual_cases
    from opkit.testing import launch_of

    if shape is not None:
        sizes = parse_shape(shape)
        if 0 in sizes:
            raise UsageError(f"--shape {shape} has no elements: nothing is launched for it")
        spec = chosen_operator(opened.project, op)
        return opened.case_of_shape(spec, sizes, chosen_variant(spec, dtype))
    cases = usual_cases(opened, op, dtype)
    if len(cases) == 1:
        return cases[0]
    runtime.configure(opened.chip)
    library = runtime.open(opened.build().folder)

    specs = {spec.op: spec for spec in opened.project.operators}

    def launch(case: Case) -> None:
        launch_of(case, specs[case.op])(library)

    return opened.first_taken(cases, launch, largest_first=True)[0]
