"""A program's launches for all cases of a task, recorded in a sandbox, twice each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

from opkit.chips import Chip
from opkit.errors import OperatorError
from opkit.executor import Cage, Crew, Folder, LocalExecutor, Lost, Work, read_value
from opkit.judging.entry import MARK_INTERFACE
from opkit.judging.golden import require_torch
from opkit.judging.lockdown import Limits
from opkit.judging.recording import KernelText, Recorded, join_recordings, read_recording
from opkit.judging.worker import RecordRequest, RecordSetup, begin_recording
from opkit.schema import OpSpec

__all__ = ["recorded_program"]

_SEEDS = (0x5EED, 0xC0FFEE)
"""Seeds of inputs by which no launch is judged."""


def recorded_program(
    folder: Folder,
    spec: OpSpec,
    calls: Sequence[RecordRequest],
    chip: Chip,
    limits: Limits,
    *,
    cage: Cage,
    uses_torch: bool,
) -> dict[str, Recorded]:
    """Return what a program launches, by the names of cases.

    Args:
        folder: the candidate's files, as the sandbox has them.
        calls: the cases.
        cage: the sandbox.
        uses_torch: it takes tensors of torch.
    Raises:
        SetupError: it needs torch, which is not installed.
    """
    if uses_torch:
        require_torch("the program")
        # In no sandbox, where the first use of torch's device would have to build it.
        from opkit.torch_npu import libraries

        libraries()
    setup = RecordSetup(spec, chip.name, limits, uses_torch)
    most = limits.memory_mib << 19
    work = Work(
        *(begin_recording, setup, {"candidate": folder}), seconds=limits.seconds, most_bytes=most
    )
    found: dict[str, Recorded] = {}
    with LocalExecutor(1, cage=cage).open(work) as crew:
        for call in calls:
            answers: list[dict[str, Any]] = []
            for seed in _SEEDS:
                case = replace(call.case, seed=seed, label=call.case.name)
                answers.append(_answer(crew, replace(call, case=case)))
                if "error" in answers[-1]:
                    break
            one = _joined(answers, len(call.outputs))
            found[call.case.name] = one
            if one.failure.get("kind") == "Lost":
                # Its process would end again, after its time.
                return found | {
                    each.case.name: one for each in calls if each.case.name not in found
                }
    return found


def _answer(crew: Crew, request: RecordRequest) -> dict[str, Any]:
    try:
        (found,) = crew.run([request])
    except OperatorError as error:
        found = Lost(error.message, 1)
    if isinstance(found, Lost):
        return {"error": str(found), "kind": "Lost", "reason": found.reason}
    return found if isinstance(found, dict) else {"error": "", "kind": "Garbled"}


def _joined(answers: Sequence[dict[str, Any]], outputs: int) -> Recorded:
    failure = next((each for each in answers if "error" in each), None)
    if failure is not None:
        return Recorded(failure=failure)
    try:
        first, second = (read_recording(read_value(each["recording"])) for each in answers)
        kernels = _kernels(answers)
        if any(step.kernel not in kernels for step in first.steps):
            raise ValueError("a launch of no kernel")
    except (KeyError, TypeError, ValueError):
        return Recorded(failure={"error": "", "kind": "Garbled"})
    if len(first.outputs) != outputs:
        said = f"{len(first.outputs)} results, where the operator has {outputs}"
        return Recorded(failure={"error": f"{MARK_INTERFACE}it gives {said}", "kind": "Raised"})
    recording, depends = join_recordings(first, second)
    if recording is None:
        return Recorded(failure={"error": depends, "kind": "HostComputed"})
    if None in recording.outputs:
        at = recording.outputs.index(None)
        said = f"result {at} is no memory that a kernel was given, nor a copy of it"
        return Recorded(failure={"error": said, "kind": "HostComputed"})
    return Recorded(recording, kernels, depends=depends)


def _kernels(answers: Sequence[Mapping[str, Any]]) -> dict[str, KernelText]:
    names = {each.name for each in fields(KernelText)}
    found = {}
    for row in (row for each in answers for row in each["kernels"]):
        text = KernelText(**{name: row[name] for name in names})
        is_text = isinstance(text.name, str) and isinstance(text.source, str)
        if not is_text or not isinstance(text.mode, str | None):
            raise ValueError("no kernel")
        found[text.key] = text
    return found
