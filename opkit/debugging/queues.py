"""The state of queues, buffers and event ids at any instruction, and calls that are missing."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from opkit.chips import pipe_names
from opkit.debugging.recording import Recording, spaces
from opkit.debugging.session import Session
from opkit.debugging.source_names import source_file

__all__ = ["PipeState", "Slot", "missing_call", "pipes_at", "slots_at"]

_STATES = {
    "PlaceBuffer": "placed",
    "AllocTensor": "allocated",
    "EnQue": "enqueued",
    "DeQue": "dequeued",
    "FreeTensor": "free",
}


@dataclass(frozen=True)
class Slot:
    """One buffer of a queue, or a TBuf."""

    name: str
    """As InitBuffer's argument is called; empty where the source does not tell."""
    number: int
    space: str
    address: int
    size_bytes: int
    state: str
    """`placed`, `allocated`, `enqueued`, `dequeued` or `free`."""
    file: Path
    line: int
    """Source line of the call that brought it there."""
    event: int
    """That call's number among the events."""


@dataclass(frozen=True)
class PipeState:
    """What a pipe has done."""

    pipe: str
    instructions: int
    last_op: str
    file: Path
    line: int


def slots_at(recording: Recording, step: int, core: int) -> list[Slot]:
    """Return the buffers of a core before an instruction."""
    slots: dict[tuple[str, int], Slot] = {}
    for number, event in enumerate(recording.events):
        if event["core"] != core or event["action"] not in _STATES:
            continue
        if event["step"] > step:
            break
        key = (event["space"], event["address"])
        file, line = recording.sites[event["site"]]
        known = slots.get(key)
        if event["action"] == "PlaceBuffer":
            name = source_file(file).buffer_name(line)
            others = [s for k, s in slots.items() if k != key and s.name == name]
            of_it = sum(1 for s in others if s.line == line)
            placed = (event["space"], event["address"], event["bytes"])
            slots[key] = Slot(name, of_it, *placed, "placed", file, line, number)
        elif known is not None:
            slots[key] = Slot(
                known.name,
                known.number,
                known.space,
                known.address,
                known.size_bytes,
                _STATES[event["action"]],
                file,
                line,
                number,
            )
    return list(slots.values())


def pipes_at(recording: Recording, step: int, core: int) -> list[PipeState]:
    """Return what each pipe of a core has done before an instruction."""
    names = (*pipe_names(), "ALL")
    steps = recording.steps_of[core]
    steps = steps[: np.searchsorted(steps, step)]
    found = []
    for number, name in enumerate(names):
        mine = steps[recording.pipe_of[steps] == number]
        if not len(mine):
            continue
        last = int(mine[-1])
        file, line = recording.sites[recording.site_of[last]]
        op = recording.op_names[recording.op_of[last]]
        found.append(PipeState(name, len(mine), op, file, line))
    return found


def missing_call(session: Session) -> tuple[Path, int, str] | None:
    """Return where a queue's call is missing that a queue's fault is about: (file, line, why)."""
    recording = session.recording
    fault = recording.fault
    if fault is None:
        return None
    if fault.category == "Deadlock":
        return _missing_signal(session)
    if fault.category != "QueueMisuse":
        return None
    core = next(
        (
            number
            for number, (kind, block, _) in enumerate(recording.cores)
            if (kind, block) == (fault.sub_core, fault.block)
        ),
        None,
    )
    if core is None or fault.file is None:
        return None
    queue, call, _ = source_file(fault.file).queue_call(fault.line)
    slots = [s for s in slots_at(recording, recording.step_count, core) if s.state != "placed"]
    named = [s for s in slots if s.name == queue] or slots
    if call == "DeQue":
        return _held(session, core, [s for s in named if s.state == "allocated"], "EnQue")
    if call == "AllocTensor":
        waiting = [s for s in named if s.state == "dequeued"]
        found = _held(session, core, waiting, "FreeTensor")
        if found is not None:
            return found
        return _held(session, core, [s for s in named if s.state == "enqueued"], "DeQue")
    return None


def _missing_signal(session: Session) -> tuple[Path, int, str] | None:
    """Return the WaitFlag whose SetFlag is missing; None where another instruction waits."""
    step = session.fault_step()
    if step is None:
        return None
    waits = session.recording.instruction(step)
    if waits.op != "WaitFlag":
        return None
    event = f"{waits.pipe}_{waits.peer_pipe}"
    return waits.file, waits.line, f"SetFlag<HardEvent::{event}> is missing in front of this line"


def _held(
    session: Session, core: int, slots: list[Slot], call: str
) -> tuple[Path, int, str] | None:
    """Return the last instruction that used the tensor which is held too long."""
    if not slots:
        return None
    recording = session.recording
    # What was taken first has been held longest; of a queue of several its latest tells as much.
    slot = max(slots, key=lambda s: s.event)
    taken = recording.events[slot.event]
    last = _last_use(recording, core, slot, int(taken["step"]))
    file, line = (slot.file, slot.line) if last is None else last
    name = slot.name or "the queue"
    since = {"EnQue": "AllocTensor", "FreeTensor": "DeQue", "DeQue": "EnQue"}[call]
    return (
        file,
        line,
        (f"{name}.{call} is missing: the tensor of {since} at line {slot.line} was last used here"),
    )


def _last_use(recording: Recording, core: int, slot: Slot, since: int) -> tuple[Path, int] | None:
    steps: Any = recording.steps_of[core]
    steps = steps[np.searchsorted(steps, since) :]
    if slot.space not in spaces():
        return None
    for step in steps[::-1][:512]:
        instruction = recording.instruction(int(step))
        operands = [instruction.dst, *instruction.sources]
        for operand in operands:
            if operand is None or operand.space != slot.space:
                continue
            if slot.address <= operand.address < slot.address + slot.size_bytes:
                return instruction.file, instruction.line
    return None
