"""The device's native library, loaded at most once a process."""

from __future__ import annotations

import atexit
import ctypes
import os
import sys
import threading
from typing import Any

import torch

from opkit import log
from opkit.errors import UsageError
from opkit.torch_npu.build import is_built, libraries
from opkit.torch_npu.faults import keep_faults, wants_faults_kept
from opkit.torch_npu.first_use import restore
from opkit.torch_npu.profiler_variables import start_from_environment
from opkit.torch_npu.synchronised_batch_norm import register_steps

__all__ = ["device_count", "device_index", "is_built", "library", "load"]

COUNT = "OPKIT_NPU_COUNT"
_MODES = {"silent": 0, "warn": 1, "error": 2}
_lock = threading.Lock()
_loaded: ctypes.CDLL | None = None


def device_count() -> int:
    """Return how many devices there are: `OPKIT_NPU_COUNT`, one where it is not set."""
    text = os.environ.get(COUNT, "1")
    if not text.isdigit() or int(text) > 64:
        raise UsageError(f"{COUNT} is {text!r}, expected a number from 0 to 64")
    return int(text)


def device_index(device: Any = None) -> int:
    """Return which of the devices is meant: this thread's where nothing says another.

    Raises:
        ValueError: it is a device of another kind.
    """
    if isinstance(device, int):
        return device
    found = torch.device("npu" if device is None else device)
    if found.type != "npu":
        raise ValueError(f'{device} is no npu: name one as "npu" or "npu:0", or by its number')
    if found.index is not None:
        return found.index
    load()
    current: int = torch._C._accelerator_hooks_get_current_device()
    return current


def load() -> ctypes.CDLL:
    """Return the native library; the first call loads it, and builds it where it has to.

    Raises:
        SetupError: it cannot be built.
        UsageError: a variable of the environment has a wrong value.
    """
    global _loaded
    if _loaded is not None:
        return _loaded
    with _lock:
        if _loaded is None:
            _loaded = _load()
    return _loaded


def library() -> ctypes.CDLL:
    """Return the native library."""
    return _loaded if _loaded is not None else load()


def _load() -> ctypes.CDLL:
    from opkit.runtime import load_emulator

    mode = os.environ.get("OPKIT_FALLBACK", "silent")
    if mode not in _MODES:
        raise UsageError(f"OPKIT_FALLBACK is {mode!r}, expected one of {', '.join(_MODES)}")
    load_emulator()
    backend, kernels = libraries()
    found = ctypes.CDLL(str(backend))
    for name in (
        "opkit_npu_start",
        "opkit_npu_counts",
        "opkit_npu_which",
        "opkit_npu_kernels",
        "opkit_npu_chip",
    ):
        getattr(found, name).restype = ctypes.c_char_p
    found.opkit_npu_stream_us.restype = ctypes.c_double
    found.opkit_npu_stream_us.argtypes = [ctypes.c_int, ctypes.c_int64]
    found.opkit_npu_clock_us.restype = ctypes.c_double
    found.opkit_npu_charge.argtypes = [ctypes.c_int, ctypes.c_double]
    found.opkit_npu_current_stream.restype = ctypes.c_int64
    found.opkit_npu_set_stream.argtypes = [ctypes.c_int, ctypes.c_int64]
    error = found.opkit_npu_start(device_count())
    if error is not None:
        raise UsageError(error.decode())
    found.opkit_npu_fallback_mode(_MODES[mode])
    error = found.opkit_npu_kernels(str(kernels).encode())
    if error is not None:
        raise UsageError(error.decode())
    _tell(found.opkit_npu_chip().decode())
    # Released here, the interpreter's lock is free for the threads that are waited for.
    atexit.register(found.opkit_npu_settle)
    register_steps()
    restore()
    if wants_faults_kept():
        keep_faults(found)
    start_from_environment()
    # Only a program that is watched has imported it: "import torch" need not.
    watch = sys.modules.get("opkit.torch_npu.watch")
    if watch is not None:
        watch.attach(found)
    return found


def _tell(chip: str) -> None:
    """Let npu-smi and the log know that this process has devices."""
    import opkit.emulator._emulator as _emulator

    _emulator.show_process(chip, device_count())
    log.info("TORCH", "the device npu is loaded", chip=chip, devices=device_count())
