"""Recordings of programs: what two have in common, what is refused, what a replay does."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from opkit.errors import UsageError
from opkit.judging.recording import (
    Content,
    Number,
    Output,
    Recording,
    Step,
    Words,
    join_recordings,
    read_recording,
    replay,
)

STEP = Step("add", 2, (Words(0, 0, 8), Words(1, 4, 8), Number(b"\1\0\0\0")))
RECORDING = Recording((8, 12), (STEP,), (Output(Words(1, 4, 8), (2,), (4,), "<f4"),))


class Kernel:
    """Adds one to floats, and notes how it was launched."""

    def __init__(self) -> None:
        self.calls: list[tuple[int, list[Any]]] = []

    def launch(self, arguments: list[Any], block_dim: int) -> None:
        import ctypes

        source, target, number = arguments
        values = np.frombuffer(ctypes.string_at(*source), np.float32) + 1
        ctypes.memmove(target[0], values.astype(np.float32).tobytes(), target[1])
        self.calls.append((block_dim, [number]))


def test_a_replay_launches_on_the_inputs_that_it_is_given() -> None:
    kernel = Kernel()
    (found,) = replay(RECORDING, [np.array([1, 2], np.float32)], {"add": kernel})
    assert found.tolist() == [2, 3]
    assert kernel.calls == [(2, [b"\1\0\0\0"])]
    with pytest.raises(UsageError, match="other sizes"):
        replay(RECORDING, [np.zeros(3, np.float32)], {"add": kernel})


def test_what_the_host_wrote_is_written_before_the_launch() -> None:
    table = Content(Words(0, 0, 8), np.array([5, 6], np.float32).tobytes())
    step = replace(STEP, contents=(table,))
    (found,) = replay(
        replace(RECORDING, steps=(step,)), [np.zeros(2, np.float32)], {"add": Kernel()}
    )
    assert found.tolist() == [6, 7]
    nobodys = replace(STEP, contents=(Content(Words(0, 0, 8)),))
    (found,) = replay(
        replace(RECORDING, steps=(nobodys,)), [np.zeros(2, np.float32)], {"add": Kernel()}
    )
    assert found[0] == found[1] != 1


def test_equal_recordings_are_one_and_differences_are_named() -> None:
    assert join_recordings(RECORDING, RECORDING) == (RECORDING, "")
    step = replace(STEP, block_dim=3)
    found, depends = join_recordings(RECORDING, replace(RECORDING, steps=(step,)))
    assert found is None
    assert "blocks" in depends
    found, depends = join_recordings(RECORDING, replace(RECORDING, steps=()))
    assert (found, depends) == (None, "1 launches, or 0")


def test_bytes_that_follow_the_inputs_are_nobodys() -> None:
    def with_bytes(data: bytes) -> Recording:
        return replace(RECORDING, steps=(replace(STEP, contents=(Content(Words(1, 0, 4), data),)),))

    found, depends = join_recordings(with_bytes(b"1234"), with_bytes(b"5678"))
    assert found is not None
    assert found.steps[0].contents == (Content(Words(1, 0, 4)),)
    assert "what the host has written" in depends
    assert join_recordings(with_bytes(b"1234"), with_bytes(b"1234")) == (with_bytes(b"1234"), "")


def test_a_recording_goes_out_as_plain_values() -> None:
    assert read_recording(RECORDING.as_plain()) == RECORDING


@pytest.mark.parametrize(
    "change",
    [
        lambda plain: plain["steps"][0]["arguments"][0].update(buffer=2),
        lambda plain: plain["steps"][0]["arguments"][0].update(begin=-4),
        lambda plain: plain["steps"][0]["arguments"][0].update(size=9),
        lambda plain: plain["outputs"][0].update(shape=(3,)),
        lambda plain: plain["outputs"][0].update(strides=(400,)),
        lambda plain: plain["outputs"][0].update(dtype="O"),
        lambda plain: plain.update(buffers=(8, -1)),
        lambda plain: plain.update(buffers=(8, 1 << 40)),
        lambda plain: plain.pop("steps"),
        lambda plain: plain.update(steps=7),
    ],
)
def test_what_lies_outside_of_its_memory_is_no_recording(change: Any) -> None:
    # It comes from a process that the candidate may have taken over.
    plain = copy.deepcopy(RECORDING.as_plain())
    change(plain)
    with pytest.raises((ValueError, TypeError)):
        read_recording(plain)
