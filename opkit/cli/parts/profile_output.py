"""What `opkit profile` prints and writes of timelines that are there."""

from __future__ import annotations

import datetime
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

import opkit
from opkit.cli.console import Console, write_text
from opkit.errors import cannot_write

if TYPE_CHECKING:
    from opkit.profiling import Change, CpuCall, ModelProfile, PlaceTime, Timeline

__all__ = ["Outputs", "made_text", "model_of", "show_difference", "show_fault", "show_timelines"]


@dataclass(frozen=True)
class Outputs:
    """Files to write beside the printed result; None for none."""

    html: Path | None
    trace: Path | None
    csv_folder: Path | None
    has_operators: bool = False
    """Whether the launches are those of a program, which has operators to sum up."""


def show_timelines(
    name: str,
    timelines: list[Timeline],
    outputs: Outputs,
    lines: int,
    console: Console,
    model: ModelProfile | None = None,
) -> None:
    """Print the longest launch, list the others, and write the files asked for.

    Args:
        model: of a program whose launches PyTorch made: by operator, module and line.
    """
    from opkit.profiling import summary_text

    faulted = next((timeline for timeline in timelines if timeline.fault), None)
    if faulted is not None:
        show_fault(name, faulted.kernel, faulted.chip, faulted.fault, console)
        raise click.exceptions.Exit(1)
    longest = max(timelines, key=lambda timeline: timeline.task_us)
    _write(longest, timelines, name, outputs, console, model)
    if outputs.csv_folder is not None and outputs.has_operators:
        _write_operators(timelines, outputs.csv_folder, console)
    if console.json:
        console.emit_json(_fields(longest, timelines, name, model))
        return
    console.result(f"{name}\n")
    if len(timelines) > 1:
        _list_launches(timelines, longest, console)
    if model is not None:
        _show_model(model, lines, console)
    console.result(summary_text(longest, line_count=lines))


def show_fault(name: str, kernel: str, chip: str, fault: str, console: Console) -> None:
    """Say that a launch faulted: what it got to has no time worth telling."""
    if console.json:
        fields = {"case": name, "kernel": kernel, "chip": chip, "faulted": True, "fault": fault}
        console.emit_json(fields)
    else:
        console.result(f"{name}: {kernel} faulted, so there is no time: {fault}")


def _write(
    timeline: Timeline,
    timelines: list[Timeline],
    name: str,
    outputs: Outputs,
    console: Console,
    model: ModelProfile | None,
) -> None:
    from opkit.profiling import csv_texts, html_page, trace_text

    if outputs.html is not None:
        page = html_page(timeline, case=name, made=made_text(), model=model, launches=timelines)
        write_text(outputs.html, page)
        console.status("wrote", str(outputs.html))
    if outputs.trace is not None:
        write_text(outputs.trace, trace_text(timeline))
        console.status("wrote", str(outputs.trace))
    if outputs.csv_folder is not None:
        try:
            outputs.csv_folder.mkdir(parents=True, exist_ok=True)
        except OSError as err:
            raise cannot_write(outputs.csv_folder, err) from err
        for file, text in csv_texts(timeline).items():
            write_text(outputs.csv_folder / file, text)
        console.status("wrote", f"{outputs.csv_folder}, {len(csv_texts(timeline))} CSV files")


def _write_operators(timelines: list[Timeline], folder: Path, console: Console) -> None:
    from opkit.profiling import write_operator_files
    from opkit.torch_npu import operator_counts

    try:
        paths = write_operator_files(folder, timelines, operator_counts())
    except OSError as err:
        raise cannot_write(folder, err) from err
    console.status("wrote", ", ".join(map(str, paths)))


def made_text() -> str:
    """Return when a report was made, and by what."""
    now = datetime.datetime.now().astimezone()
    version = ".".join(map(str, sys.version_info[:3]))
    return f"{now:%Y-%m-%d %H:%M %z}, opkit {opkit.__version__}, Python {version}"


def _list_launches(timelines: list[Timeline], longest: Timeline, console: Console) -> None:
    from opkit.profiling import time_text

    rows = [
        (
            str(number) + (" *" if timeline is longest else ""),
            timeline.kernel,
            str(timeline.block_dim),
            time_text(timeline.task_us, timeline.band_percent()),
            timeline.bound_by,
        )
        for number, timeline in enumerate(timelines, 1)
    ]
    total = time_text(sum(timeline.task_us for timeline in timelines))
    title = f"{len(timelines)} launches, {total} together; * is shown below"
    console.table(
        ("launch", "kernel", "blocks", "task", "bound by"), rows, title=title, right=("blocks",)
    )
    console.result()


def _fields(
    timeline: Timeline, timelines: list[Timeline], name: str, model: ModelProfile | None
) -> dict[str, object]:
    """Return the timeline without its events, which belong in --trace."""
    import dataclasses

    from opkit.profiling import advise, report_sources

    fields: dict[str, object] = {
        field.name: getattr(timeline, field.name)
        for field in dataclasses.fields(timeline)
        if field.name not in ("events", "waits", "scalar", "place")
    }
    return {
        "case": name,
        "kind": "model, not a measurement",
        **fields,
        "faulted": False,
        "band_percent": timeline.band_percent(),
        "guesses": timeline.guesses,
        "core_us": timeline.core_us,
        "bound_by": timeline.bound_by,
        "bounds": {kind: time.pipe for kind, time in timeline.bounds.items()},
        "balance": timeline.balance,
        "pipes": [
            {**dataclasses.asdict(time), "band_percent": timeline.band_percent(time.pipe)}
            for time in timeline.pipes()
        ],
        "advice": advise(timeline),
        "sources": report_sources(timeline),
        "launches": [
            {
                "kernel": item.kernel,
                "block_dim": item.block_dim,
                "task_us": item.task_us,
                **_place_fields(item),
            }
            for item in timelines
        ],
        **({"model": dataclasses.asdict(model)} if model is not None else {}),
    }


def _place_fields(timeline: Timeline) -> dict[str, object]:
    place = timeline.place
    if place is None:
        return {}
    module = place.modules[-1] if place.modules else ""
    known = {"module": module, "file": place.file, "line": place.line}
    return {**known, "is_backward": place.is_backward}


def model_of(timelines: list[Timeline], cpu_calls: list[CpuCall]) -> ModelProfile | None:
    """Return a program's times by operator, module and line; None if PyTorch made no launch."""
    from opkit.profiling import TimedLaunch, model_profile

    launches = [
        TimedLaunch(item.kernel, item.place, item.task_us)
        for item in timelines
        if item.place is not None
    ]
    return model_profile(launches, cpu_calls) if launches else None


def _show_model(model: ModelProfile, count: int, console: Console) -> None:
    from opkit.profiling import time_text

    for title, rows, has_parts in (
        ("by operator", model.operators, False),
        ("by module, with its parts", model.modules, True),
        ("by line of Python", model.lines, False),
    ):
        shown = rows[:count]
        if not shown:
            continue
        columns = ["name", "launches", "task", "share", "backward", "on the CPU"]
        if has_parts:
            columns.insert(4, "own")
        table = [_place_row(row, model.task_us, has_parts) for row in shown]
        if len(rows) > len(shown):
            title += f": {len(shown)} of {len(rows)}, --lines shows more"
        console.table(tuple(columns), table, title=title, right=tuple(columns[1:]))
        console.result()
    calls = model.launches + model.cpu_calls
    console.result(
        f"{model.cpu_calls} of {calls} launches and calls ran on the CPU, which have no modelled"
        f" time ({time_text(model.cpu_host_us)} on this machine)\n"
    )


def _place_row(row: PlaceTime, total_us: float, has_parts: bool) -> tuple[str, ...]:
    from opkit.profiling import time_text

    share = f"{100 * row.task_us / total_us:.1f} %" if total_us else ""
    own = (time_text(row.own_us),) if has_parts else ()
    backward = time_text(row.backward_us) if row.backward_us else ""
    cells = (row.name, str(row.launches), time_text(row.task_us), share, *own, backward)
    return (*cells, str(row.cpu_calls) if row.cpu_calls else "")


def show_difference(
    before: Path, after: Path, limit: float, lines: int, html: Path | None, console: Console
) -> bool:
    """Print what changed from one file of --json to another; whether it is slower than allowed."""
    from opkit.profiling import compare_reports, difference_page, read_report, time_text

    found = compare_reports(read_report(before), read_report(after), limit_percent=limit)
    if html is not None:
        page = difference_page(found, (before.stem, after.stem), made=made_text())
        write_text(html, page)
        console.status("wrote", str(html))
    if console.json:
        import dataclasses

        console.emit_json({**dataclasses.asdict(found), "is_slower": found.is_slower})
        return found.is_slower
    head = f"{time_text(found.task.before)} -> {time_text(found.task.after)} on {found.chip}"
    console.result(f"task {head}, {_percent(found.task)}")
    rows = [_row(f"{item.name} busy", item, time_text) for item in found.pipes]
    rows += [
        _row(item.name.removesuffix("_bytes").replace("_", " "), item, lambda size: f"{size:.0f} B")
        for item in found.traffic
        if item.before or item.after
    ]
    rows += [_row(item.name, item, time_text) for item in found.lines[:lines]]
    columns = ("what", "before", "after", "change")
    console.table(columns, rows, right=columns[1:])
    if found.is_slower:
        console.result(f"slower by more than {limit:g} %")
    return found.is_slower


def _row(name: str, change: Change, text: Callable[[float], str]) -> tuple[str, str, str, str]:
    return name, text(change.before), text(change.after), _percent(change)


def _percent(change: Change) -> str:
    return f"{change.percent:+.1f} %" if change.percent is not None else "new"
