"""What the tests' workers do: imported by them, so in a file of its own."""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
import struct
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from opkit.errors import SetupError
from opkit.executor.plain import to_bytes

Case = tuple[str, int]


def begin(setup: str, folders: Mapping[str, Path]) -> Callable[[Case], int | str | bytes]:
    def run(case: Case) -> int | str | bytes:
        kind, number = case
        marker = Path(setup) / f"{kind}-{number}"
        if kind == "crash":
            os.kill(os.getpid(), signal.SIGSEGV)
        if kind in ("crash once", "stop once") and not marker.exists():
            marker.touch()
            os.kill(os.getpid(), signal.SIGKILL if kind == "crash once" else signal.SIGSTOP)
        if kind == "exit":
            os._exit(number)
        if kind == "kill group":
            os.killpg(0, signal.SIGKILL)
        if kind == "write":
            # As a kernel does that knows no more than that there are open files.
            for file in range(3, 64):
                with contextlib.suppress(OSError):
                    os.write(file, b"\0\0\0\x05words")
            os._exit(number)
        if kind == "stop":
            os.kill(os.getpid(), signal.SIGSTOP)
        if kind == "length":
            # The length of a message that never comes.
            for file in range(3, 64):
                with contextlib.suppress(OSError):
                    os.write(file, b"\0\1\0\0")
            time.sleep(60)
        if kind == "many":
            return bytes(number)
        if kind == "raise":
            raise ValueError(f"case {number}")
        if kind == "sleep":
            marker.touch()
            try:
                time.sleep(60)
            finally:
                (Path(setup) / "left cleanly").touch()
        if kind == "read":
            return (folders["data"] / "text").read_text()
        return number * number

    return run


def begin_badly(setup: str, folders: Mapping[str, Path]) -> Callable[[Case], int]:
    os._exit(3)


FORGED = {
    "a pickle that runs something": b"cos\nsystem\n(S'touch MARKER'\ntR.",
    "a pickle": pickle.dumps([(0, pickle.dumps(7))]),
    "no value": to_bytes([(0, memoryview(b"words"))]),
    "no results": to_bytes(3),
    "no pairs": to_bytes([0, 7]),
    "no numbers": to_bytes([("0", memoryview(to_bytes({"value": 7})))]),
    "another type": to_bytes([(0, memoryview(to_bytes({"value": "7"})))]),
    "more than a value": to_bytes([(0, memoryview(to_bytes({"value": 7, "more": 1})))]),
    "no error of opkit's": to_bytes([(0, memoryview(to_bytes({"error": "exit"})))]),
    "a beginning that failed without a word": to_bytes({"error": "SetupError"}),
}
"""Messages that a kernel may write to its process's pipe in place of a whole number."""


def begin_forging(setup: str, folders: Mapping[str, Path]) -> Callable[[str], int]:
    def run(case: str) -> int:
        if case in FORGED:
            data = FORGED[case].replace(b"MARKER", f"{setup}/ran".encode())
            for file in range(3, 64):
                with contextlib.suppress(OSError):
                    os.write(file, struct.pack("!i", len(data)) + data)
            time.sleep(60)
        if case == "another type of its own":
            return str(case)  # type: ignore[return-value]
        return len(case)

    return run


def begin_failing(setup: str, folders: Mapping[str, Path]) -> Callable[[Case], int]:
    raise SetupError("no such library", help="make it")


def begin_classes(setup: str, folders: Mapping[str, Path]) -> Callable[[str], object]:
    def run(case: str) -> object:
        return {"numbers": [1, 2.5], "bytes": b"\0"} if case == "plain" else Path(setup)

    return run


class Closing:
    """Runs cases, and leaves a mark when it is closed."""

    def __init__(self, setup: str) -> None:
        self.setup = setup

    def __call__(self, case: Case) -> int:
        return case[1]

    def close(self) -> None:
        (Path(self.setup) / "closed").touch()


def begin_closing(setup: str, folders: Mapping[str, Path]) -> Closing:
    return Closing(setup)
