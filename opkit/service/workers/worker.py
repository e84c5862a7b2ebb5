"""The worker process: loads one version, or one reference, and answers one call after another.

    python -m opkit.service.workers.worker CHANNEL MEMORY SETTINGS

CHANNEL and MEMORY are inherited file descriptors, SETTINGS a JSON object. What goes wrong with a
call is an answer; whatever else goes wrong ends this process, and costs the service one attempt.
"""

from __future__ import annotations

import ctypes
import json
import resource
import signal
import socket
import sys
import time
from pathlib import Path
from typing import Any

from opkit.errors import OpkitError, SetupError, UsageError
from opkit.service.workers.arguments import Inputs, Rule
from opkit.service.workers.loaded import (
    Loaded,
    Reference,
    has_odd_values,
    load,
    load_reference,
    modelled_time,
)
from opkit.service.workers.messages import LARGEST_TEXT, receive, send
from opkit.service.workers.shared_memory import SharedMemory, Tensor

__all__ = ["main"]

_PR_SET_PDEATHSIG = 1
_ANSWERED = (
    *(OpkitError, MemoryError, OSError, RuntimeError),
    *(ArithmeticError, AttributeError, LookupError, TypeError, ValueError, NameError),
)


def main(arguments: list[str]) -> None:
    """Load what the settings name, say so, and answer calls until the channel closes."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    for ignored in (signal.SIGINT, signal.SIGTERM):
        # Of the terminal's process group: the service ends its workers itself.
        signal.signal(ignored, signal.SIG_IGN)
    channel = socket.socket(fileno=int(arguments[0]))
    memory = SharedMemory(int(arguments[1]))
    settings = json.loads(arguments[2])
    try:
        worker = _Worker(memory, settings)
        send(channel, {"ok": True, **worker.greeting()})
    except _ANSWERED as error:
        send(channel, _failure(error))
        return
    _limit_memory(int(settings["memory_bytes"]))
    while (request := receive(channel)) is not None:
        try:
            reply = worker.answer(request)
        except _ANSWERED as error:
            reply = _failure(error)
        send(channel, reply)


class _Worker:
    def __init__(self, memory: SharedMemory, settings: dict[str, Any]) -> None:
        self._memory = memory
        self._tensor_bytes = int(settings["tensor_bytes"])
        folder = Path(settings["folder"])
        self._loaded: Loaded | None = None
        self._reference: Reference | None = None
        if settings["reference"]:
            self._reference = load_reference(folder)
        else:
            self._loaded = load(folder, threads=int(settings["threads"]))

    def greeting(self) -> dict[str, Any]:
        runs = self._loaded or self._reference
        assert runs is not None
        return {"interface": runs.interface.to_json()}

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        self._memory.see_growth()
        inputs: Inputs = [self._tensor(item) for item in request["inputs"]]
        attributes = request["attributes"]
        if request["do"] == "judge":
            assert self._reference is not None
            outputs = [self._memory.get(item) for item in request["outputs"]]
            wrong = self._reference.judge(inputs, attributes, outputs, Rule(*request["rule"]))
            return {"ok": True, "wrong": wrong[:LARGEST_TEXT]}
        if request["do"] == "model":
            assert self._loaded is not None
            return {"ok": True, "modelled": vars(modelled_time(self._loaded, inputs, attributes))}
        runs = self._loaded or self._reference
        assert runs is not None
        begin = time.perf_counter()
        found = runs.run(inputs, attributes)
        seconds = time.perf_counter() - begin
        if sum(array.nbytes for array, _ in found) > self._tensor_bytes:
            raise UsageError(f"the outputs have more than {self._tensor_bytes} bytes")
        described, _ = self._memory.put(found, request["end"])
        return {
            "ok": True,
            "outputs": described,
            "seconds": seconds,
            "odd": has_odd_values(found),
        }

    def _tensor(self, item: Any) -> Tensor | list[Tensor] | None:
        if item is None:
            return None
        # A list of tensors begins with a list, a tensor with its data type's name.
        if not item or isinstance(item[0], list):
            return [self._memory.get(each) for each in item]
        return self._memory.get(item)


def _limit_memory(above_bytes: int) -> None:
    now = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (now + above_bytes, now + above_bytes))


def _failure(error: BaseException) -> dict[str, Any]:
    """Return what went wrong, by who must act: the caller, this machine, or the version."""
    kind = "error"
    if isinstance(error, UsageError):
        kind = "refused"
    elif isinstance(error, SetupError):
        kind = "unsupported"
    elif isinstance(error, MemoryError):
        kind = "memory"
    text = str(error) if isinstance(error, OpkitError) else f"{type(error).__name__}: {error}"
    return {"ok": False, "kind": kind, "message": text[:LARGEST_TEXT]}


if __name__ == "__main__":
    main(sys.argv[1:])
