"""The trace against the Trace Event Format."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

from opkit.profiling import trace_text
from opkit.profiling.shown import read_timeline


def events_of(record: dict[str, Any], phase: str) -> list[dict[str, Any]]:
    trace = json.loads(trace_text(read_timeline(record)))
    return [event for event in trace["traceEvents"] if event["ph"] == phase]


def test_each_event_is_complete_and_in_microseconds(record: dict[str, Any]) -> None:
    add, copy = events_of(record, "X")
    assert (copy["name"], copy["ts"], copy["dur"]) == ("DataCopy", 0.0, 1.0)
    assert (add["name"], add["ts"], add["dur"]) == ("Add", 0.5, 1.5)
    assert copy["args"]["bytes"] == 4096
    assert add["args"]["where"] == "op_kernel/gelu.cpp:20"


def test_cores_are_processes_and_pipes_are_threads(record: dict[str, Any]) -> None:
    names = {
        (event["pid"], event["tid"]): event["args"]["name"]
        for event in events_of(record, "M")
        if event["name"] == "thread_name"
    }
    for event in events_of(record, "X"):
        assert names[event["pid"], event["tid"]] == event["cat"]
    processes = [e["args"]["name"] for e in events_of(record, "M") if e["name"] == "process_name"]
    assert processes == ["aiv block 0", "aiv block 1"]


def test_the_trace_says_that_it_is_a_model(record: dict[str, Any]) -> None:
    trace = json.loads(trace_text(read_timeline(record)))
    assert trace["otherData"]["kind"] == "model, not a measurement"
    assert trace["otherData"]["chip"] == "Ascend910B2"


def test_slices_of_a_row_do_not_meet(time_streams: Any) -> None:
    copies = [
        {
            "op": "DataCopy",
            "pipe": "MTE2",
            "dst": {"space": 1, "address": 0},
            "src": [{"space": 0, "address": 8192 * i}],
            "burst_bytes": 8192,
            "burst_count": 1,
        }
        for i in range(6)
    ]
    trace = json.loads(trace_text(time_streams(copies, copies)))
    rows: dict[tuple[int, int], list[tuple[float, float]]] = {}
    for event in trace["traceEvents"]:
        if event["ph"] == "X":
            place = (event["pid"], event["tid"])
            rows.setdefault(place, []).append((event["ts"], event["ts"] + event["dur"]))
    # The latency of each copy but the last is cut off: it stands on rows of its own.
    assert len(rows) > 2
    for slices in rows.values():
        assert all(one[1] <= other[0] + 1e-9 for one, other in pairwise(sorted(slices)))
