"""Places in one piece of memory for buffers of which not all live at the same time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["Lifetime", "share_memory"]

ALIGNMENT = 512
"""Bytes; what the device's own allocator cuts its memory into."""


@dataclass
class Lifetime:
    """A buffer, from the launch that writes it to the last one that reads it."""

    size_bytes: int
    first: int
    last: int


def share_memory(buffers: Mapping[str, Lifetime]) -> tuple[dict[str, int], int]:
    """Return each buffer's offset, and the bytes that all take together.

    The largest are placed first, each at the lowest offset at which nothing lies that lives at the
    same time.
    """
    offsets: dict[str, int] = {}
    total = 0
    order = sorted(buffers, key=lambda name: (-buffers[name].size_bytes, buffers[name].first, name))
    for name in order:
        buffer = buffers[name]
        size = _rounded(buffer.size_bytes)
        taken = sorted(
            (offset, offset + _rounded(buffers[other].size_bytes))
            for other, offset in offsets.items()
            if buffers[other].first <= buffer.last and buffer.first <= buffers[other].last
        )
        at = 0
        for begin, end in taken:
            if at + size <= begin:
                break
            at = max(at, end)
        offsets[name] = at
        total = max(total, at + size)
    return offsets, total


def _rounded(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT
