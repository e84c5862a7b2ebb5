"""`ASCEND_LAUNCH_BLOCKING=0`: faults of kernels are raised where the host waits, as on the chip."""

from __future__ import annotations

import ctypes
import os
import sys
from typing import Any

from opkit.torch_npu.frames import calling_line

__all__ = ["keep_faults", "wants_faults_kept"]

BLOCKING = "ASCEND_LAUNCH_BLOCKING"
_WRITER = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_size_t)


def wants_faults_kept() -> bool:
    """Whether the environment asks for launches that the host does not wait for."""
    return os.environ.get(BLOCKING) == "0"


def _write_line(text: int, size: int) -> None:
    file, line = calling_line(sys._getframe())
    if file:
        found = f"{file}:{line}".encode()[: size - 1] + b"\0"
        ctypes.memmove(text, found, len(found))


_line_writer = _WRITER(_write_line)  # the library calls it as long as the process lives


def keep_faults(library: Any, *, is_on: bool = True) -> None:
    """Have the device keep a fault, with the line that launched, until the host waits for it."""
    library.opkit_npu_line_writer(_line_writer if is_on else _WRITER())
    library.opkit_npu_launch_blocking(int(not is_on))
