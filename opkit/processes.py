"""Processes: how one is ended, by whom it is outlived, and which use emulated devices.

Those that do keep a small file each that is mapped (emulator/include/opkit/process_files.h):
figures first, two a device, then a JSON object. Files of processes that are gone are deleted by
whoever reads.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import struct
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from opkit.errors import Terminated
from opkit.folders import runtime_folder

__all__ = [
    "DeviceProcess",
    "TooLong",
    "alarm_after",
    "device_folder",
    "device_processes",
    "end_with_parent",
    "signal_group",
    "termination_unwinds",
]

_SAME_SIGNAL_SECONDS = 2.0


@contextlib.contextmanager
def termination_unwinds() -> Iterator[None]:
    """Let SIGTERM raise `Terminated`: children are stopped and scratch folders deleted on the way.

    A second one while things are cleaned up ends the process. Where somebody else handles the
    signal, or in another thread than the first, nothing changes.
    """
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return
    first = 0.0

    def leave(number: int, frame: FrameType | None) -> None:
        nonlocal first
        if first == 0.0:
            first = time.monotonic()
            raise Terminated
        # One that comes at once is the first again: `timeout` sends it to a process and its group.
        if time.monotonic() - first > _SAME_SIGNAL_SECONDS:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            signal.raise_signal(signal.SIGTERM)

    signal.signal(signal.SIGTERM, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


class TooLong(BaseException):
    """A limit of time that has passed; what it stops, stops as for Ctrl-C."""


@contextlib.contextmanager
def alarm_after(seconds: float | None) -> Iterator[None]:
    """Raise `TooLong` in the main thread once so many seconds have passed.

    In another thread, or inside of another such limit, nothing changes.
    """
    is_main = threading.current_thread() is threading.main_thread()
    if seconds is None or not is_main or signal.getitimer(signal.ITIMER_REAL)[0] > 0:
        yield
        return

    def stop(number: int, frame: FrameType | None) -> None:
        raise TooLong

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def end_with_parent(number: int) -> None:
    """Have the system send this process a signal when the one that started it has ended."""
    import ctypes

    set_death_signal = 1  # PR_SET_PDEATHSIG of prctl(2)
    parent = os.getppid()
    ctypes.CDLL(None).prctl(set_death_signal, int(number), 0, 0, 0)
    if os.getppid() != parent:
        os.kill(os.getpid(), number)


def signal_group(leader: int, number: int) -> None:
    """Send a signal to a process that leads a group, and to all that it has started there."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, number)


_DEVICES = 64
_FIGURES = struct.Struct(f"<{2 * _DEVICES}q")


@dataclass(frozen=True)
class DeviceProcess:
    """One process."""

    pid: int
    name: str
    chip: str
    """The chip that it emulates, such as `Ascend910B2`."""
    devices: int
    """How many it has."""
    held_bytes: tuple[int, ...]
    """By device: what allocations hold."""
    reserved_bytes: tuple[int, ...]
    """By device: that, and what is kept for the next allocations."""


def device_folder() -> Path:
    """Return where processes leave their files: `$XDG_RUNTIME_DIR`, else the user's cache."""
    return runtime_folder() / "devices"


def device_processes() -> list[DeviceProcess]:
    """Return the processes of this user that use emulated devices, by their numbers."""
    found = []
    for path in sorted(device_folder().glob("*.state")):
        process = _read(path)
        if process is None:
            with contextlib.suppress(OSError):
                path.unlink()
        else:
            found.append(process)
    return sorted(found, key=lambda process: process.pid)


def _read(path: Path) -> DeviceProcess | None:
    """Return the process that a file tells of; None where it is gone."""
    try:
        content = path.read_bytes()
        figures = _FIGURES.unpack_from(content)
        text = content[_FIGURES.size :].split(b"\0", 1)[0]
        told = json.loads(text.decode("utf-8", "replace"))
        pid, devices = int(told["pid"]), int(told["devices"])
    except (OSError, ValueError, KeyError, struct.error):
        return None
    if _start_ticks(pid) != told.get("start_ticks"):
        return None
    held, reserved = figures[0 : 2 * devices : 2], figures[1 : 2 * devices : 2]
    return DeviceProcess(pid, str(told["name"]), str(told["chip"]), devices, held, reserved)


def _start_ticks(pid: int) -> int | None:
    """Return when a process started, in the kernel's ticks; None where there is none."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    # Field 22 of proc(5); the name in parentheses, which may hold spaces, is the second.
    return int(text.rpartition(")")[2].split()[19])
