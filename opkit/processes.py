"""Processes that use emulated devices, and the memory that they hold there.

Each keeps a small file that is mapped (emulator/include/opkit/process_files.h): figures first, two
a device, then a JSON object. Files of processes that are gone are deleted by whoever reads.
"""

from __future__ import annotations

import contextlib
import json
import struct
from dataclasses import dataclass
from pathlib import Path

from opkit.folders import runtime_folder

__all__ = ["DeviceProcess", "device_folder", "device_processes"]

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
