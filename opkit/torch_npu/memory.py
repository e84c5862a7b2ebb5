"""Memory of the devices: figures, the table that PyTorch prints, and the snapshot of its viewer."""

from __future__ import annotations

import ctypes
import json
import pickle
import sys
import threading
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from opkit.errors import UsageError
from opkit.runtime import load_emulator
from opkit.torch_npu.native import device_count, device_index, load

__all__ = [
    "empty_cache",
    "max_memory_allocated",
    "max_memory_reserved",
    "mem_get_info",
    "memory_allocated",
    "memory_dump_snapshot",
    "memory_reserved",
    "memory_snapshot",
    "memory_stats",
    "memory_summary",
    "record_memory_history",
    "reset_accumulated_memory_stats",
    "reset_peak_memory_stats",
    "set_allocator_settings",
    "set_per_process_memory_fraction",
]

_SETTINGS = {"max_split_size_mb": -1.0, "garbage_collection_threshold": 0.0}
_fraction = 1.0
# An address: what a callback returns as c_char_p is never freed.
_STACK = ctypes.CFUNCTYPE(ctypes.c_void_p)
_kept: list[Any] = []
_texts: dict[int, ctypes.Array[ctypes.c_char]] = {}


def memory_stats(device: Any = None) -> dict[str, Any]:
    """Return every figure of a device's allocator, named as PyTorch names them."""
    load()
    stats: dict[str, Any] = dict(torch.accelerator.memory_stats(device_index(device)))
    return stats


def memory_allocated(device: Any = None) -> int:
    """Return the bytes of a device that tensors hold."""
    return int(memory_stats(device).get("allocated_bytes.all.current", 0))


def max_memory_allocated(device: Any = None) -> int:
    """Return the most bytes that tensors have held since the peaks were reset."""
    return int(memory_stats(device).get("allocated_bytes.all.peak", 0))


def memory_reserved(device: Any = None) -> int:
    """Return the bytes of a device that tensors hold or that are kept for the next ones."""
    return int(memory_stats(device).get("reserved_bytes.all.current", 0))


def max_memory_reserved(device: Any = None) -> int:
    """Return the most bytes that were reserved since the peaks were reset."""
    return int(memory_stats(device).get("reserved_bytes.all.peak", 0))


def reset_peak_memory_stats(device: Any = None) -> None:
    """Make the present figures the peaks."""
    load()
    torch.accelerator.reset_peak_memory_stats(device_index(device))


def reset_accumulated_memory_stats(device: Any = None) -> None:
    """Set what was allocated and freed in all to zero."""
    load()
    torch.accelerator.reset_accumulated_memory_stats(device_index(device))


def empty_cache() -> None:
    """Give back what no tensor holds."""
    load()
    torch.accelerator.empty_cache()


def mem_get_info(device: Any = None) -> tuple[int, int]:
    """Return the bytes of a device that are free, and all of its bytes."""
    load()
    free, total = torch._C._accelerator_getMemoryInfo(device_index(device))
    return int(free), int(total)


def memory_summary(device: Any = None, abbreviated: bool = False) -> str:
    """Return the figures as the table that PyTorch prints for other devices."""
    stats = memory_stats(device)
    rows = [
        ("Allocated memory", "allocated_bytes", 1),
        ("Requested memory", "requested_bytes", 1),
        ("Reserved memory", "reserved_bytes", 1),
        ("Inactive, split", "inactive_split_bytes", 1),
        ("Allocations", "allocation", 0),
        ("Segments", "segment", 0),
        ("Inactive splits", "inactive_split", 0),
    ]
    pools = (
        [("", "all")]
        if abbreviated
        else [("", "all"), ("small", "small_pool"), ("large", "large_pool")]
    )
    title = f"npu:{device_index(device)} memory"
    lines = [title, f"{'':26}{'now':>14}{'peak':>14}{'added':>14}{'removed':>14}"]
    for text, name, is_bytes in rows:
        for label, pool in pools:
            figures = [
                stats.get(f"{name}.{pool}.{k}", 0)
                for k in ("current", "peak", "allocated", "freed")
            ]
            shown = [_size(value) if is_bytes else str(value) for value in figures]
            head = f"  {label}" if label else text
            lines.append(f"{head:26}" + "".join(f"{value:>14}" for value in shown))
    lines.append(
        f"out of memory: {stats.get('num_ooms', 0)}, retries: {stats.get('num_alloc_retries', 0)}"
    )
    return "\n".join(lines)


def _size(count: int) -> str:
    value, unit = float(count), "B"
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(value) < 1024 or unit == "GiB":
            break
        value /= 1024
    return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"


def record_memory_history(enabled: str | bool | None = "all", max_entries: int = 100_000) -> None:
    """Keep allocations and the Python lines that made them, for `memory_snapshot`; None ends it."""
    native = load_emulator()
    load()
    native.opkit_memory_record.argtypes = [ctypes.c_uint64, ctypes.c_void_p]
    if not enabled:
        native.opkit_memory_record(0, None)
        return
    callback = _STACK(_python_stack)
    _kept.append(callback)
    native.opkit_memory_record(max_entries, ctypes.cast(callback, ctypes.c_void_p))


def _python_stack() -> int:
    # An autograd thread has no Python frame but this one. Nothing may be raised from here.
    caller = sys._getframe(0).f_back
    frames = (
        traceback.StackSummary.extract(traceback.walk_stack(caller), limit=16, lookup_lines=False)
        if caller is not None
        else []
    )
    text = "\n".join(f"{f.filename}\t{f.lineno}\t{f.name}" for f in frames)
    # The caller copies it before this thread can be here again. Not thread-local: a thread that is
    # not Python's loses what is when this returns.
    buffer = _texts[threading.get_ident()] = ctypes.create_string_buffer(text.encode())
    return ctypes.addressof(buffer)


def memory_snapshot() -> dict[str, Any]:
    """Return segments, blocks and recorded events in the form of PyTorch's memory viewer."""
    native = load_emulator()
    load()
    native.opkit_memory_snapshot.restype = ctypes.c_char_p
    found = json.loads(native.opkit_memory_snapshot())
    for segment in found["segments"]:
        segment["segment_pool_id"] = (0, 0)
        segment["is_expandable"] = False
        segment["frames"] = []
        for block in segment["blocks"]:
            block["frames"] = _frames(block.pop("stack"))
    for trace in found["device_traces"]:
        for event in trace:
            event["frames"] = _frames(event.pop("stack"))
    settings = {"PYTORCH_ALLOC_CONF": "", **_SETTINGS}
    return {**found, "allocator_settings": settings, "external_annotations": []}


def _frames(text: str) -> list[dict[str, Any]]:
    parts = [line.split("\t") for line in text.split("\n") if line]
    return [{"filename": file, "line": int(line), "name": name} for file, line, name in parts]


def memory_dump_snapshot(file: str | Path = "dump_snapshot.pickle") -> None:
    """Write the snapshot for pytorch.org/memory_viz."""
    path = Path(file)
    aside = path.with_name(f".{path.name}.tmp")
    aside.write_bytes(pickle.dumps(memory_snapshot()))
    aside.replace(path)


def set_allocator_settings(settings: str | None = None, **keywords: float) -> None:
    """Change how device memory is kept: `max_split_size_mb` (from 20; blocks above are not split)
    and `garbage_collection_threshold` (0 to 1: part of the memory above which unused blocks go).

    Args:
        settings: the text form of PyTorch, such as `"max_split_size_mb:128"`.
    Raises:
        UsageError: no such setting, or a value that cannot be.
    """
    given: dict[str, float] = dict(_pairs(settings)) if settings else {}
    given.update(keywords)
    for name in given:
        if name not in _SETTINGS:
            raise UsageError(
                f'"{name}" is no setting of the allocator; there is {", ".join(_SETTINGS)}'
            )
    _apply({**_SETTINGS, **given}, _fraction)
    _SETTINGS.update(given)


def _pairs(text: str) -> Mapping[str, float]:
    pairs = {}
    for part in text.split(","):
        name, _, value = part.partition(":")
        try:
            pairs[name.strip()] = float(value)
        except ValueError:
            raise UsageError(
                f'"{part}" is no setting of the allocator', help='write "name:number"'
            ) from None
    return pairs


def _apply(settings: Mapping[str, float], fraction: float) -> None:
    native = load_emulator()
    load()
    native.opkit_memory_configure.argtypes = [
        ctypes.c_int32,
        ctypes.c_int64,
        ctypes.c_double,
        ctypes.c_double,
    ]
    split = settings["max_split_size_mb"]
    split_bytes = -1 if split < 0 else int(split * (1 << 20))
    for device in range(device_count()):
        threshold = settings["garbage_collection_threshold"]
        if native.opkit_memory_configure(device, split_bytes, threshold, fraction) != 0:
            raise UsageError(
                f"the allocator does not take {dict(settings)} with a fraction of {fraction}",
                help="max_split_size_mb is 20 or more, the threshold 0 to 1, the fraction above 0",
            )


def set_per_process_memory_fraction(fraction: float, device: Any = None) -> None:
    """Let this process have only a part of the devices' memory, from above 0 to 1."""
    global _fraction
    _apply(_SETTINGS, fraction)
    _fraction = fraction
