"""Circles of streams: found at the call that closes them, with names, lines and advice."""

from __future__ import annotations

import random

import pytest

from opkit.errors import UsageError
from opkit.optimisers import Cycle, DeadlockDetector, Task

CROSS = [
    Task("wait", "copy", "computed"),
    Task("record", "copy", "copied"),
    Task("wait", "compute", "copied"),
    Task("record", "compute", "computed"),
]


def test_two_streams_that_wait_for_each_other() -> None:
    (cycle,) = DeadlockDetector.check_deadlock(CROSS)
    assert cycle.streams == ("copy", "compute")
    assert str(cycle).splitlines() == [
        "deadlock risk: copy -> compute -> copy",
        "  copy waits for computed at task 0, which compute records at task 3",
        "  compute waits for copied at task 2, which copy records at task 1",
        "  advice: 1. put the tasks of copy and compute into one stream",
        "          2. synchronise explicitly between the two",
    ]


def test_three_streams_get_the_advice_for_three() -> None:
    tasks = [Task("wait", name, f"e{i}") for i, name in enumerate("abc")]
    tasks += [Task("record", name, f"e{(i - 1) % 3}") for i, name in enumerate("abc")]
    (cycle,) = DeadlockDetector.check_deadlock(tasks)
    assert len(cycle.links) == 3
    assert "schedule all of it on one stream" in str(cycle)


def test_a_stream_that_waits_for_itself() -> None:
    (cycle,) = DeadlockDetector.check_deadlock([Task("wait", "a", "e"), Task("record", "a", "e")])
    assert "record e before a waits for it" in str(cycle)


def test_turns_that_end_are_no_circle() -> None:
    tasks = []
    for _ in range(5):
        tasks += [Task("record", "a", "ready"), Task("wait", "b", "ready")]
        tasks += [Task("record", "b", "done"), Task("wait", "a", "done")]
    assert DeadlockDetector.check_deadlock(tasks) == []


def test_an_unknown_action_is_refused() -> None:
    with pytest.raises(UsageError, match=r'task 0: "signal" is neither'):
        DeadlockDetector.check_deadlock([Task("signal", "a", "e")])


def noted(tasks: list[Task]) -> list[Cycle]:
    """The same program, told call by call."""
    found: list[Cycle] = []
    detector = DeadlockDetector(on_cycle=found.append)
    numbers: dict[str, int] = {}
    for task in tasks:
        stream = numbers.setdefault("s" + task.stream, len(numbers) + 1)
        event = numbers.setdefault("e" + task.event, len(numbers) + 1)
        detector.name_stream(stream, task.stream)
        (detector.record if task.action == "record" else detector.wait)(stream, event)
    assert [cycle.streams for cycle in detector.cycles] == [cycle.streams for cycle in found]
    return found


def test_the_call_that_closes_the_circle_finds_it() -> None:
    assert noted(CROSS[:3]) == []
    (cycle,) = noted(CROSS)
    assert cycle.streams == ("copy", "compute")
    assert cycle.links[0].wait.startswith(__file__)


def test_both_searches_agree_on_random_programs() -> None:
    circles = 0
    for seed in range(300):
        generator = random.Random(seed)
        tasks = [
            Task(
                generator.choice(["record", "wait"]),
                generator.choice("abc"),
                generator.choice("xyz"),
            )
            for _ in range(generator.randrange(3, 14))
        ]
        by_graph = bool(DeadlockDetector.check_deadlock(tasks))
        assert by_graph == bool(noted(tasks)), tasks
        circles += by_graph
    assert 20 < circles < 280


def test_waits_without_a_recording_are_listed() -> None:
    detector = DeadlockDetector()
    detector.name_stream(1, "copy")
    detector.wait(1, 5)
    (link,) = detector.unrecorded
    assert link.stream == "copy"
    detector.record(2, 5)
    assert detector.unrecorded == []


@pytest.mark.torch
def test_streams_of_torch() -> None:
    import torch

    from opkit.torch_npu.autoload import autoload

    if not hasattr(torch, "npu"):
        autoload()
    torch.npu.init()
    first, second = torch.Stream(device="npu:0"), torch.Stream(device="npu:0")
    copied, computed = torch.npu.Event(), torch.npu.Event()
    with DeadlockDetector(on_cycle=lambda cycle: None) as detector:
        detector.name_stream(first, "copy")
        detector.name_stream(second, "compute")
        computed.wait(first)
        copied.record(first)
        copied.wait(second)
        assert detector.cycles == []
        computed.record(second)
    (cycle,) = detector.cycles
    assert cycle.streams == ("copy", "compute")
    assert all(link.wait.startswith(__file__) for link in cycle.links)
    # Outside of the block nothing is watched.
    computed.wait(second)
    assert len(detector.cycles) == 1
