"""A timeline as Chrome trace JSON, which Perfetto and chrome://tracing open.

Source: Trace Event Format, a public document of the Chromium project: complete events `X`,
metadata `M`.
"""

from __future__ import annotations

import json

from opkit.profiling.timeline import PIPES, Timeline

__all__ = ["trace_object", "trace_text"]


def trace_object(timeline: Timeline) -> dict[str, object]:
    """Return the trace: one process a core, one thread a pipe, times in microseconds."""
    events: list[dict[str, object]] = []
    used = {(event.core, timeline.lines[event.line].pipe) for event in timeline.events}
    for index, core in enumerate(timeline.cores):
        name = f"{core.kind} block {core.block}"
        events.append(_metadata("process_name", index, 0, {"name": name}))
        events.append(_metadata("process_sort_index", index, 0, {"sort_index": index}))
        for thread, pipe in enumerate(PIPES):
            if (index, pipe) in used:
                events.append(_metadata("thread_name", index, thread, {"name": pipe}))
                events.append(_metadata("thread_sort_index", index, thread, {"sort_index": thread}))
    for event in timeline.events:
        line = timeline.lines[event.line]
        details: dict[str, object] = {
            "where": f"{line.file}:{line.line}",
            "start_cycle": event.start_cycle,
            "end_cycle": event.end_cycle,
        }
        if event.bytes:
            details["bytes"] = event.bytes
        events.append(
            {
                "ph": "X",
                "name": line.instruction,
                "cat": line.pipe,
                "pid": event.core,
                "tid": PIPES.index(line.pipe),
                "ts": event.start_cycle / timeline.clock_mhz,
                "dur": (event.end_cycle - event.start_cycle) / timeline.clock_mhz,
                "args": details,
            }
        )
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


def _metadata(name: str, pid: int, tid: int, values: dict[str, object]) -> dict[str, object]:
    return {"ph": "M", "name": name, "pid": pid, "tid": tid, "args": values}
