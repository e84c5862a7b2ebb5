"""The debugger's language on a small kernel: stops, steps, memory and names."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from opkit.debugging import COMMANDS, Debugger
from opkit.errors import UsageError

Line = Callable[[Debugger, str], int]


def test_a_breakpoint_at_a_line_stops_each_time_in_front_of_it(
    debugger: Debugger, line_of: Line
) -> None:
    line = line_of(debugger, "Add(zLocal")
    assert debugger.run(f"break {line}").data["places"] == 8
    first = debugger.run("run").data
    assert (first["line"], first["instruction"], first["tile"]) == (line, "Add", 0)
    assert debugger.run("print zLocal[0]").data["nan"] == 1
    debugger.run("step")
    assert debugger.run("print zLocal[0:3]").data["values"] == [1.0, 2.0, 3.0]
    assert debugger.run("run").data["tile"] == 1


def test_a_line_without_instructions_is_the_next_one_that_has_any(
    debugger: Debugger, line_of: Line
) -> None:
    line = line_of(debugger, "__aicore__ void Compute")
    found = debugger.run(f"break {line}")
    assert str(line + 1) in found.data["text"]


def test_a_step_back_undoes_a_step(debugger: Debugger) -> None:
    debugger.run("break Muls")
    debugger.run("run")
    before = debugger.run("print zLocal").data
    debugger.run("step")
    after = debugger.run("print zLocal").data
    assert after["values"] == [2 * value for value in before["values"]]
    debugger.run("stepback")
    assert debugger.run("print zLocal").data == before


def test_global_memory_goes_back_too(debugger: Debugger) -> None:
    debugger.run("end")
    assert debugger.run("print zGlobal").data["values"][:2] == [2.0, 4.0]
    debugger.run("start")
    assert debugger.run("print zGlobal").data["max"] == 0.0
    debugger.run("watch zGlobal[70]")
    assert debugger.run("run").data["tile"] == 1
    shown = debugger.run("print zGlobal").data["values"]
    assert shown[:2] == [2.0, 4.0]
    assert debugger.run("print zGlobal[128]").data["values"] == [0.0]


def test_tiles_are_stepped_forwards_and_backwards(debugger: Debugger) -> None:
    assert debugger.run("tile").data["tile"] == 1
    assert debugger.run("tile 2").data["tile"] == 3
    assert debugger.run("tile -1").data["tile"] == 2
    assert debugger.run("tile -9").data["position"] == 0


def test_lines_are_stepped_forwards_and_backwards(debugger: Debugger, line_of: Line) -> None:
    start = debugger.run("where").data["line"]
    assert start == line_of(debugger, "DataCopy(xLocal")
    assert debugger.run("next").data["line"] == line_of(debugger, "DataCopy(yLocal")
    assert debugger.run("prev").data["line"] == start


def test_a_condition_is_asked_at_each_place(debugger: Debugger) -> None:
    debugger.run("break Muls if zLocal[0] > 100")
    assert debugger.run("run").data["tile"] == 2
    assert debugger.run("back").data["reason"] == "start"


def test_a_log_writes_wherever_the_launch_passes_and_does_not_stop(debugger: Debugger) -> None:
    debugger.run("log Muls core 1 if zLocal[0] > 300 : z is {zLocal[0]} of {len(zLocal)}")
    debugger.run("break Muls core 1 tile 3")
    went = debugger.run("run")
    assert went.data["log"] == ["z is 321 of 64", "z is 385 of 64", "z is 449 of 64"]
    assert went.text.startswith("z is 321 of 64\n") and went.data["tile"] == 3
    # Steps pass it, too, and backwards it is the other way round.
    assert debugger.run("stepback tile 2").data["log"] == ["z is 385 of 64"]
    assert debugger.run("breakpoints").data["breakpoints"][0]["hits"] == 4


def test_run_goes_back_to_the_breakpoint_before(debugger: Debugger) -> None:
    debugger.run("break Muls core 1")
    debugger.run("end")
    assert debugger.run("back").data["tile"] == 3
    assert debugger.run("back").data["tile"] == 2
    assert debugger.run("where").data["core"] == 1


def test_queues_flags_and_pipes_are_those_of_the_moment(debugger: Debugger) -> None:
    assert {row["state"] for row in debugger.run("queues").data["queues"]} == {
        "placed",
        "allocated",
    }
    debugger.run("break Add")
    debugger.run("run")
    states = {
        f"{row['name']}#{row['slot']}": row["state"]
        for row in debugger.run("queues").data["queues"]
    }
    assert states["xQueue#0"] == "dequeued"
    assert states["zQueue#0"] == "allocated"
    assert states["zQueue#1"] == "placed"
    assert {row["pipe"] for row in debugger.run("pipes").data["pipes"]} >= {"MTE2"}
    debugger.run("step 3")
    flags = debugger.run("flags").data["flags"]
    assert {"V_MTE3"} <= {f"{row['from']}_{row['to']}" for row in flags}


def test_memory_without_a_name_is_read_by_its_place(debugger: Debugger) -> None:
    debugger.run("break Add")
    debugger.run("run")
    named = debugger.run("print xLocal[2:4]").data
    placed = debugger.run(f"print UB:{named['address']}:float32:2").data
    assert placed["values"] == named["values"] == [2.0, 3.0]


def test_another_core_is_looked_at_without_moving(debugger: Debugger) -> None:
    debugger.run("break Muls core 1")
    debugger.run("run")
    position = debugger.run("where").data["position"]
    assert debugger.run("core 0").data["position"] == position
    assert debugger.run("where").data["instruction"] is None
    assert len(debugger.run("core").data["cores"]) == 2


def test_why_tells_the_chain_back_to_the_inputs(debugger: Debugger) -> None:
    debugger.run("end")
    answer = debugger.run("why zGlobal[300]").data
    assert [link["op"] for link in answer["chain"]] == [
        "DataCopy",
        "DataCopy",
        "Add",
        "Muls",
        "DataCopy",
    ]
    assert answer["value"] == 602.0
    assert answer["chain"][2]["value"] == 301.0
    assert answer["chain"][3]["scalar"] == 2.0
    assert len(answer["origins"]) == 2
    assert answer["first"] is None


@pytest.mark.parametrize(
    ("line", "wrong"),
    [
        ("brek 3", 'there is no command "brek"'),
        ("break nowhere.cpp:3", "comes from nowhere.cpp"),
        ("break 99999", "no instruction comes from there"),
        ("break Adds", "issues no Adds"),
        ("break Ad", 'there is no instruction "Ad"'),
        ("break Add core 9", "there is no core 9"),
        ("break Add core", "break is written"),
        ("break finding", "opkit check finds nothing"),
        ("break fault", "has not faulted"),
        ("break Muls if nothing[0] > 1", 'no tensor "nothing"'),
        ("break Muls if f(", "is no expression"),
        ("log Muls", "log is written"),
        ("log Muls : {zLocal[0]", "a brace stands alone"),
        ("log Muls : {nothing}", 'no tensor "nothing"'),
        ("watch xGlobal", "no instruction of this launch writes"),
        ("watch zGlobal golden", "nothing says what zGlobal should be"),
        ("print w", 'no tensor "w"'),
        ("print zGlobal[99999]", "is outside"),
        ("print zGlobal[3:1]", "is outside"),
        ("print open(zGlobal)", 'there is no function "open"'),
        ("print UB:0:float99", "is not a data type"),
        ("print UB:99999999:float32:4", "is no part of the recording"),
        ("print GM:64:float32:4", "no tensor of this launch lies there"),
        ("goto 99999", "there is no instruction 99999"),
        ("goto core 7", "there is no core 7"),
        ("delete 3", "there is no breakpoint 3"),
        ("step x", "is no number"),
        ("why", "nothing says that this launch is wrong"),
    ],
)
def test_what_cannot_be_done_is_said(debugger: Debugger, line: str, wrong: str) -> None:
    with pytest.raises(UsageError, match=wrong.replace("[", r"\[").replace("(", r"\(")):
        debugger.run(line)


def test_help_tells_every_command(debugger: Debugger) -> None:
    text = debugger.run("help").text
    assert all(usage in text for _, _, usage, _ in COMMANDS)


def _random_line(draw: random.Random, count: int) -> str:
    return draw.choice(
        [
            f"step {draw.randint(1, 9)}",
            f"stepback {draw.randint(1, 9)}",
            f"next {draw.randint(1, 3)}",
            f"prev {draw.randint(1, 3)}",
            f"tile {draw.randint(-2, 2)}",
            f"goto {draw.randint(-1, count + 1)}",
            f"core {draw.randint(0, 2)}",
            "run",
            "back",
            "start",
            "end",
            f"break {draw.choice(['Add', 'Muls', 'DataCopy', 'Exp'])}",
            f"watch zGlobal[{draw.randint(0, 600)}]",
            f"delete {draw.randint(1, 20)}",
            "print zLocal",
            "print xLocal[0:4]",
            f"print zGlobal[{draw.randint(0, 600)}]",
            "tensors",
            "queues",
            "flags",
            "pipes",
            "where",
            "list",
            "instruction",
            f"why zGlobal[{draw.randint(0, 600)}]",
            "nonsense",
        ]
    )


def test_after_random_commands_the_state_is_that_of_a_plain_run(
    record: Callable[..., Debugger],
) -> None:
    plain = record()
    count = plain.session.recording.step_count
    states: dict[int, tuple[Any, ...]] = {}

    def state(debugger: Debugger, step: int) -> tuple[Any, ...]:
        read = debugger.session.recording.read
        ranges = debugger.session.recording.ranges
        local = tuple(read(step, "UB", 0, 2048, core=core) for core in range(2))
        # Where memory lies is another thing in each launch.
        contents = [read(step, "GM", r.begin, r.size_bytes) or b"" for r in ranges]
        return (*local, *sorted(contents))

    # The plain run: once through, forwards.
    for step in range(count + 1):
        states[step] = state(plain, step)
    final = plain.z.tobytes()  # type: ignore[attr-defined]
    assert final in states[count]
    debugger = record()
    draw = random.Random(19)
    compared = 0
    for _ in range(1000):
        try:
            debugger.run(_random_line(draw, count))
        except UsageError:
            continue
        step = debugger.session.position
        assert state(debugger, step) == states[step]
        compared += 1
    assert compared > 500
    assert debugger.session.recording.differing_checkpoints() == 0
