"""A timeline as Chrome trace JSON, which Perfetto and chrome://tracing open.

Source: Trace Event Format, a public document of the Chromium project: complete events `X`,
metadata `M`; the slices of one thread nest or do not meet.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from itertools import pairwise

from opkit.profiling.timeline import PIPES, Timeline, TimelineEvent

__all__ = ["trace_object", "trace_text"]

_FIRST_LANE = len(PIPES)
"""Threads from here on show what is under way behind a pipe's next instruction."""


def trace_object(timeline: Timeline) -> dict[str, object]:
    """Return the trace: one process a core, one thread a pipe, times in microseconds.

    A pipe begins its next instruction while the result of the one before is still under way: the
    part of a slice that the next one would cut stands on a thread of its own, `MTE2 under way`.
    """
    events: list[dict[str, object]] = []
    rows: dict[tuple[int, str], list[TimelineEvent]] = {}
    for event in timeline.events:
        rows.setdefault((event.core, timeline.lines[event.line].pipe), []).append(event)
    for index, core in enumerate(timeline.cores):
        name = f"{core.kind} block {core.block}"
        events.append(_metadata("process_name", index, 0, {"name": name}))
        events.append(_metadata("process_sort_index", index, 0, {"sort_index": index}))
        lane = _FIRST_LANE
        for thread, pipe in enumerate(PIPES):
            row = rows.get((index, pipe))
            if row is None:
                continue
            events += _thread(index, thread, thread, pipe)
            slices, tails = _cut(row)
            events += (_slice(timeline, thread, *part) for part in slices)
            for lane_of_pipe in _lanes(tails):
                events += _thread(index, lane, thread, f"{pipe} under way")
                events += (_slice(timeline, lane, *part) for part in lane_of_pipe)
                lane += 1
    return {
        "traceEvents": events,
        "displayTimeUnit": "ns",
        "otherData": {
            "kernel": timeline.kernel,
            "chip": timeline.chip,
            "block_dim": timeline.block_dim,
            "task_us": timeline.task_us,
            "kind": "model, not a measurement",
            "events_dropped": timeline.events_dropped,
        },
    }


def trace_text(timeline: Timeline) -> str:
    """Return the trace as JSON text."""
    return json.dumps(trace_object(timeline), separators=(",", ":")) + "\n"


_Part = tuple[TimelineEvent, float, float]
"""An event, and from when to when a slice shows it, in cycles."""


def _cut(row: list[TimelineEvent]) -> tuple[list[_Part], list[_Part]]:
    """Return a pipe's slices, none of which reaches into the next, and what was cut off them."""
    order = sorted(row, key=lambda event: (event.start_cycle, event.end_cycle))
    ends = [min(event.end_cycle, following.start_cycle) for event, following in pairwise(order)] + [
        event.end_cycle for event in order[-1:]
    ]
    slices = [(event, event.start_cycle, end) for event, end in zip(order, ends, strict=True)]
    tails = [
        (event, end, event.end_cycle)
        for event, end in zip(order, ends, strict=True)
        if end < event.end_cycle
    ]
    return slices, tails


def _lanes(parts: Iterable[_Part]) -> list[list[_Part]]:
    """Return the parts in as few rows as hold them without one meeting another."""
    lanes: list[list[_Part]] = []
    for part in parts:
        free = next((lane for lane in lanes if lane[-1][2] <= part[1]), None)
        if free is None:
            lanes.append([part])
        else:
            free.append(part)
    return lanes


def _slice(
    timeline: Timeline, thread: int, event: TimelineEvent, start: float, end: float
) -> dict[str, object]:
    line = timeline.lines[event.line]
    details: dict[str, object] = {
        "where": f"{line.file}:{line.line}",
        "start_cycle": event.start_cycle,
        "end_cycle": event.end_cycle,
    }
    if event.bytes:
        details["bytes"] = event.bytes
    return {
        "ph": "X",
        "name": line.instruction,
        "cat": line.pipe,
        "pid": event.core,
        "tid": thread,
        "ts": start / timeline.clock_mhz,
        "dur": (end - start) / timeline.clock_mhz,
        "args": details,
    }


def _thread(pid: int, thread: int, place: int, name: str) -> Iterator[dict[str, object]]:
    yield _metadata("thread_name", pid, thread, {"name": name})
    yield _metadata("thread_sort_index", pid, thread, {"sort_index": place})


def _metadata(name: str, pid: int, tid: int, values: dict[str, object]) -> dict[str, object]:
    return {"ph": "M", "name": name, "pid": pid, "tid": tid, "args": values}
