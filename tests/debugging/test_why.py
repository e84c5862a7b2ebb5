"""`why` on kernels with a bug: it names the line that was changed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from opkit.debugging import Debugger
from opkit.dtypes import find_dtype

FLOAT = find_dtype("float32")
assert FLOAT is not None
Record = Callable[..., Debugger]
Line = Callable[[Debugger, str], int]


def test_a_copy_in_that_is_too_short_is_named(record: Record, line_of: Line) -> None:
    debugger = record(count_in="32")
    debugger.run("end")
    first = debugger.run("why zGlobal[40]").data["first"]
    assert first["kind"] == "unwritten"
    assert first["line"] == line_of(debugger, "DataCopy(xLocal")


def test_what_an_earlier_tile_left_is_told_as_such(record: Record, line_of: Line) -> None:
    debugger = record(count_in="(tile_is_first ? 64 : 32)".replace("tile_is_first", "offset == 0"))
    debugger.run("end")
    first = debugger.run("why zGlobal[168]").data["first"]
    assert first["kind"] == "stale"
    assert first["line"] == line_of(debugger, "DataCopy(xLocal")


def test_a_copy_out_that_is_too_short_is_named(record: Record, line_of: Line) -> None:
    debugger = record(count_out="32")
    debugger.run("end")
    first = debugger.run("why zGlobal[100]").data["first"]
    assert first["kind"] == "unwritten"
    assert first["line"] == line_of(debugger, "DataCopy(zGlobal")


@pytest.mark.parametrize(
    ("change", "missing"),
    [({"enque": ""}, "xQueue.EnQue"), ({"free": ""}, "xQueue.FreeTensor")],
)
def test_a_queues_call_that_is_missing_is_named(
    record: Record, change: dict[str, str], missing: str
) -> None:
    debugger = record(**change)
    answer = debugger.run("why").data
    assert answer["first"]["kind"] == "fault"
    assert f"{missing} is missing" in answer["first"]["text"]


def test_a_fault_is_stood_at_and_told(record: Record, line_of: Line) -> None:
    debugger = record(shift_in=" + 512")
    stop = debugger.run("run").data
    line = line_of(debugger, "DataCopy(xLocal")
    assert (stop["reason"], stop["line"]) == ("fault", line)
    assert debugger.run("why").data["first"]["line"] == line
    assert debugger.run("stepback").data["reason"] in ("step", "fault")
    assert debugger.run("break fault").data["places"] == 1


def test_what_rounds_a_tensor_up_to_a_block_is_none_of_its_elements(record: Record) -> None:
    # "x[2:16] is never read" was said of two halves, whose range ends at 32 bytes.
    debugger = record(count_out="32")
    session = debugger.target.session
    recording = session.recording
    # The ranges are in the order of their addresses, which is another in each process.
    x = next(each for each in recording.ranges if each.name == "argument 0")
    wider = replace(x, name="input x", size_bytes=x.size_bytes + 24)
    recording.ranges = tuple(wider if each is x else each for each in recording.ranges)

    def reasons() -> str:
        return debugger.run("why zGlobal[8]").text

    assert "] is never read" in reasons()
    session.names.tell("x", FLOAT, (x.size_bytes // 4,))
    assert "is never read" not in reasons()
