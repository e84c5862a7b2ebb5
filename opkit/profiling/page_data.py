"""What the timeline of the page draws, in few bytes: columns of differences, merged where too many.

Times are tenths of a cycle. A column of starts holds the first and then the distance from each to
the next; everything else is as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeVar

from opkit.profiling.timeline import PIPES, ScalarSpan, Timeline, TimelineEvent, TimelineWait

__all__ = ["MOST_ITEMS", "REASONS", "launch_data", "memory_series", "timeline_data"]

REASONS = ("data", "buffer", "barrier", "cores")
"""What pipes wait for, in the order of the numbers that stand for them."""

MOST_ITEMS = 45_000
"""Events, waits and stretches of a launch that a page holds one by one: below 1.5 MB."""
_LEAST_ITEMS = 40
"""Fewest items of a row, however many rows there are."""
_TENTHS = 10
_POINTS = 240

_Item = TypeVar("_Item", TimelineEvent, TimelineWait, ScalarSpan)


@dataclass(frozen=True)
class _Run:
    """An item, or neighbours that stand for one."""

    start: int
    end: int
    busy: int
    """The time of all of them together."""
    first: int
    """The place of the longest, in the row."""
    count: int
    bytes: int


def timeline_data(
    *,
    clock_mhz: float,
    total_cycles: float,
    cores: Sequence[tuple[str, float]],
    lines: Sequence[tuple[str, str, str]],
    events: Sequence[TimelineEvent],
    waits: Sequence[TimelineWait] = (),
    scalar: Sequence[ScalarSpan] = (),
    launch_cycles: float = 0.0,
    items: int = MOST_ITEMS,
) -> dict[str, object]:
    """Return what timeline.js draws.

    Args:
        cores: the name of each and how long it ran, in cycles.
        lines: the instruction, place and pipe of each.
        launch_cycles: before the cores begin.
        items: how many instructions, waits and stretches may stand there one by one. Of rows that
            have more than their share, neighbours are merged: each stretch of the time has one
            that says how many there are and how long the pipe was busy.
    """
    events_of = _by_row(events, lambda item: lines[item.line][2])
    waits_of = _by_row(waits, lambda item: item.pipe)
    spans_of = _by_row(scalar, lambda _: "S")
    total = len(events) + len(waits) + len(scalar)
    share = min(1.0, items / total) if total else 1.0
    rows = []
    for key in sorted({*events_of, *waits_of, *spans_of}):
        row: dict[str, object] = {"core": key[0], "pipe": PIPES[key[1]]}
        row["events"] = _event_columns(events_of.get(key, ()), share)
        row["waits"] = _wait_columns(waits_of.get(key, ()), share)
        row["spans"] = _columns(_merged(spans_of.get(key, ()), share))
        rows.append(row)
    return {
        "mhz": clock_mhz,
        "end": max(1.0, total_cycles),
        "launch": launch_cycles,
        "cores": [name for name, _ in cores],
        "cycles": [round(cycles) for _, cycles in cores],
        "lines": [{"name": name, "where": where, "pipe": pipe} for name, where, pipe in lines],
        "merged": share < 1,
        "rows": rows,
    }


def launch_data(timeline: Timeline, *, items: int = MOST_ITEMS) -> dict[str, object]:
    """Return what timeline.js draws of a launch, and its rates of memory."""
    data = timeline_data(
        clock_mhz=timeline.clock_mhz,
        total_cycles=timeline.total_cycles,
        cores=[(f"{core.kind} block {core.block}", core.cycles) for core in timeline.cores],
        lines=[(line.instruction, line.where, line.pipe) for line in timeline.lines],
        events=timeline.events,
        waits=timeline.waits,
        scalar=timeline.scalar,
        launch_cycles=timeline.launch_us * timeline.clock_mhz,
        items=items,
    )
    return {**data, "memory": memory_series(timeline)}


def _by_row(
    items: Sequence[_Item], pipe_of: Callable[[_Item], str]
) -> dict[tuple[int, int], list[_Item]]:
    rows: dict[tuple[int, int], list[_Item]] = {}
    for item in items:
        rows.setdefault((item.core, PIPES.index(pipe_of(item))), []).append(item)
    for row in rows.values():
        row.sort(key=lambda item: (item.start_cycle, item.end_cycle))
    return rows


def _tenths(cycles: float) -> int:
    return round(cycles * _TENTHS)


def _merged(
    row: Sequence[_Item], share: float, kind_of: Callable[[_Item], object] = lambda _: None
) -> list[_Run]:
    """Return the items of a row, which begin in order, or their share of runs of one kind."""
    allowed = max(_LEAST_ITEMS, int(len(row) * share))
    ends = [_tenths(item.end_cycle) for item in row]
    starts = [_tenths(item.start_cycle) for item in row]
    sizes = [item.bytes if isinstance(item, TimelineEvent) else 0 for item in row]
    if len(row) <= allowed:
        spans = zip(starts, ends, sizes, strict=True)
        return [_Run(a, b, b - a, at, 1, size) for at, (a, b, size) in enumerate(spans)]
    slot = (max(ends) - starts[0]) / allowed or 1
    runs: list[_Run] = []
    key: object = None
    for at, item in enumerate(row):
        start, end = starts[at], ends[at]
        this = (int((start - starts[0]) / slot), kind_of(item))
        if this != key:
            runs.append(_Run(start, end, end - start, at, 1, sizes[at]))
            key = this
            continue
        run = runs[-1]
        # Of a pipe's instructions that overlap, the time counts once.
        busy = run.busy + max(0, end - max(start, run.end))
        longest = at if end - start > ends[run.first] - starts[run.first] else run.first
        end = max(run.end, end)
        size = run.bytes + sizes[at]
        runs[-1] = _Run(run.start, end, busy, longest, run.count + 1, size)
    return runs


def _columns(runs: Sequence[_Run]) -> dict[str, list[int]]:
    starts = [run.start for run in runs]
    columns = {
        "start": [*starts[:1], *(after - before for before, after in pairwise(starts))],
        "length": [run.end - run.start for run in runs],
    }
    if any(run.count > 1 for run in runs):
        columns["count"] = [run.count for run in runs]
        columns["busy"] = [run.busy for run in runs]
    return columns


def _event_columns(row: Sequence[TimelineEvent], share: float) -> dict[str, list[int]]:
    runs = _merged(row, share)
    columns = _columns(runs)
    columns["line"] = [row[run.first].line for run in runs]
    if any(run.bytes for run in runs):
        columns["bytes"] = [run.bytes for run in runs]
    return columns


def _wait_columns(row: Sequence[TimelineWait], share: float) -> dict[str, list[int]]:
    runs = _merged(row, share, lambda item: (item.reason, item.cause))
    columns = _columns(runs)
    of = [row[run.first] for run in runs]
    columns["reason"] = [REASONS.index(item.reason) for item in of]
    columns["cause"] = [PIPES.index(item.cause) for item in of]
    columns["line"] = [item.line for item in of]
    if any(item.cause_core >= 0 for item in of):
        columns["core"] = [item.cause_core for item in of]
    return columns


def memory_series(timeline: Timeline, *, points: int = _POINTS) -> dict[str, object] | None:
    """Return the rates of traffic over the time, in GB/s; None where nothing was moved.

    A copy's bytes are spread evenly from its start to its end.
    """
    length = max(1.0, timeline.total_cycles) / points
    names = ("read from HBM", "read, served by L2", "written")
    rates = {name: [0.0] * points for name in names}

    def spread(name: str, event: TimelineEvent, size: float) -> None:
        if not size:
            return
        cycles = max(event.end_cycle - event.start_cycle, 1e-9)
        first = max(0, min(points - 1, int(event.start_cycle / length)))
        last = max(0, min(points - 1, int(event.end_cycle / length)))
        for at in range(first, last + 1):
            begin = max(event.start_cycle, at * length)
            end = event.end_cycle if at == last else (at + 1) * length
            rates[name][at] += size * max(0.0, end - begin) / cycles

    for event in timeline.events:
        line = timeline.lines[event.line]
        if line.source == "GM":
            spread(names[0], event, event.bytes - event.l2_bytes)
            spread(names[1], event, event.l2_bytes)
        elif line.target == "GM":
            spread(names[2], event, event.bytes)
    shown = {name: values for name, values in rates.items() if any(values)}
    if not shown:
        return None
    seconds = length / timeline.clock_mhz * 1e-6
    return {
        "us": [round((at + 0.5) * length / timeline.clock_mhz, 4) for at in range(points)],
        "series": [
            {"name": name, "rates": [round(value / seconds / 1e9, 2) for value in values]}
            for name, values in shown.items()
        ],
    }
