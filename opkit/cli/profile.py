"""`opkit profile`: time an operator on the modelled chip."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from opkit.cli.console import Console, common_options, write_text
from opkit.cli.options import chip_option, output_option, project_argument
from opkit.dtypes import find_dtype
from opkit.errors import UsageError

if TYPE_CHECKING:
    from opkit.profiling import Timeline
    from opkit.schema import OpSpec
    from opkit.testing import Case
    from opkit.toolchain import Project

__all__ = ["command"]

_DEFAULT_SHAPE = "1048576"
_DEFAULT_ROWS = "2048x4096"


@click.command("profile", short_help="Time an operator on the modelled chip, pipe by pipe.")
@project_argument()
@click.option("--op", metavar="NAME", help="The operator; the project's first by default.")
@click.option(
    "--shape",
    metavar="SHAPE",
    help=f"Sizes of the inputs joined by x; {_DEFAULT_SHAPE}, or {_DEFAULT_ROWS} for row-wise ops.",
)
@click.option(
    "--dtype",
    metavar="DTYPE",
    help="The dtype of the first input; the prototype's first by default.",
)
@chip_option("model")
@output_option("--trace", "a Chrome trace, which ui.perfetto.dev opens")
@click.option(
    "--events",
    type=click.IntRange(min=0),
    default=200_000,
    show_default=True,
    metavar="N",
    help="Instructions that the trace keeps at the most; totals count all.",
)
@click.option(
    "--lines",
    type=click.IntRange(min=0),
    default=8,
    show_default=True,
    metavar="N",
    help="Source lines to list.",
)
@common_options
def command(
    *,
    project: Path | None,
    op: str | None,
    shape: str | None,
    dtype: str | None,
    chip: str,
    trace: Path | None,
    events: int,
    lines: int,
    console: Console,
) -> None:
    """Time an operator on the modelled chip, pipe by pipe.

    PROJECT is its folder, or any folder inside it; the working directory by default. It is built
    first where needed, launched once, and timed by a model of the chip: no time printed here was
    measured. docs/profile.md tells how far the model is from published measurements.

    Example: opkit profile gelu_custom --shape 1048576 --trace gelu.json
    """
    from opkit.profiling import summary_text, trace_text
    from opkit.toolchain import load_project

    found = load_project(project)
    spec = _chosen(found, op)
    case = _case(found, spec, shape, dtype)
    timeline = _run(found, case, chip, events, console)
    if trace is not None:
        write_text(trace, trace_text(timeline))
        console.status("wrote", str(trace))
    if console.json:
        console.emit_json(_fields(timeline, case))
        return
    console.result(f"{case.name}\n")
    console.result(summary_text(timeline, line_count=lines))


def _chosen(project: Project, op: str | None) -> OpSpec:
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


def _case(project: Project, spec: OpSpec, shape: str | None, dtype: str | None) -> Case:
    """Return the launch to time: the project's own rules for input shapes, at one shape."""
    from opkit.testing import load_golden, make_case, works_by_row

    golden = load_golden(project.package_dir / "golden.py")
    rule = golden.shape_rule(spec) if golden is not None else None
    if shape is None:
        shape = _DEFAULT_ROWS if works_by_row(spec, shape_rule=rule) else _DEFAULT_SHAPE
    return make_case(spec, _parse_shape(shape), variant=_variant(spec, dtype), shape_rule=rule)


def _variant(spec: OpSpec, dtype: str | None) -> int:
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


def _parse_shape(text: str) -> tuple[int, ...]:
    parts = text.replace(",", "x").split("x")
    if not all(part.strip().isdigit() for part in parts):
        raise UsageError(
            f"--shape {text!r} is not a shape", help="write sizes joined by x, such as 2048x4096"
        )
    return tuple(int(part) for part in parts)


def _run(project: Project, case: Case, chip: str, events: int, console: Console) -> Timeline:
    from opkit import runtime
    from opkit.profiling import Profile
    from opkit.testing import make_inputs
    from opkit.toolchain import build

    artifact = build(project, chip=chip, verbose=console.command_line, warn=console.warn)
    made = artifact.compiled + artifact.cached
    if made:
        console.status("built", f"{project.name}, {made} files in {artifact.seconds:.1f} s")
    runtime.configure(chip)
    library = runtime.open(artifact.folder)
    inputs = make_inputs(case)
    dtypes = [row.name for row in case.dtypes[: len(inputs)]]
    with Profile(event_limit=events) as session:
        library.run(case.op, inputs, dict(case.attrs), dtypes=dtypes)
    if not session.timelines:
        raise UsageError(
            f"{case.name} launched no kernel, so there is nothing to time",
            help="give a shape with at least one element",
        )
    return max(session.timelines, key=lambda timeline: timeline.task_us)


def _fields(timeline: Timeline, case: Case) -> dict[str, object]:
    """Return the timeline without its events, which belong in --trace."""
    import dataclasses

    fields: dict[str, object] = {
        field.name: getattr(timeline, field.name)
        for field in dataclasses.fields(timeline)
        if field.name != "events"
    }
    return {
        "case": case.name,
        "kind": "model, not a measurement",
        **fields,
        "core_us": timeline.core_us,
        "bound_by": timeline.bound_by,
        "balance": timeline.balance,
        "pipes": timeline.pipes(),
    }
