"""Memory that a service and one worker process share, for the tensors of calls.

It has no name in any file system, so nothing is left behind however the processes end.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from opkit.dtypes import find_dtype

__all__ = ["Described", "SharedMemory", "Tensor"]

Tensor: TypeAlias = tuple[npt.NDArray[Any], str]
"""An array and the name of its data type; bfloat16 is carried as uint16."""
Described: TypeAlias = list[Any]
"""What a message says of a tensor: data type, shape, where it begins in bytes."""

_ALIGNMENT = 64
_FIRST_BYTES = 1 << 20


class SharedMemory:
    """A run of bytes by its file descriptor; it grows and never shrinks."""

    def __init__(self, descriptor: int | None = None) -> None:
        """Make one, or open what another process has made."""
        self.descriptor = os.memfd_create("opkit-tensors") if descriptor is None else descriptor
        if descriptor is None:
            os.ftruncate(self.descriptor, _FIRST_BYTES)
        self.size_bytes = os.fstat(self.descriptor).st_size
        self._map = mmap.mmap(self.descriptor, self.size_bytes)

    def fit(self, size_bytes: int) -> None:
        """Make it at least so long."""
        if size_bytes > self.size_bytes:
            os.ftruncate(self.descriptor, max(size_bytes, 2 * self.size_bytes))
            self.see_growth()

    def see_growth(self) -> None:
        """Map what the other process has made longer."""
        size_bytes = os.fstat(self.descriptor).st_size
        if size_bytes != self.size_bytes:
            # Arrays that still lie in the old mapping keep it alive.
            self.size_bytes = size_bytes
            self._map = mmap.mmap(self.descriptor, size_bytes)

    def put(self, tensors: Sequence[Tensor], at: int) -> tuple[list[Described], int]:
        """Copy tensors to a place; return what messages say of them, and where they end."""
        places, end = [], at
        for array, _ in tensors:
            end = -(-end // _ALIGNMENT) * _ALIGNMENT
            places.append(end)
            end += array.nbytes
        self.fit(end)
        described: list[Described] = []
        for (array, dtype), place in zip(tensors, places, strict=True):
            if array.nbytes:
                view = np.ndarray(array.shape, array.dtype, buffer=self._map, offset=place)
                view[...] = array
            described.append([dtype, list(array.shape), place])
        return described, end

    def get(self, described: Described) -> Tensor:
        """Return a tensor where it lies.

        Raises:
            ValueError: it would not lie in this memory, or has no such data type.
        """
        dtype, shape, place = described
        row = find_dtype(str(dtype))
        if row is None or row.numpy is None:
            raise ValueError(f"no data type {dtype!r}")
        sizes = tuple(int(size) for size in shape)
        if min(sizes, default=0) < 0 or int(place) < 0:
            raise ValueError(f"no shape {shape!r}")
        if 0 in sizes:
            return np.empty(sizes, row.numpy), row.name
        return np.ndarray(sizes, row.numpy, buffer=self._map, offset=int(place)), row.name

    def close(self) -> None:
        """Let go of it; arrays in it stay as they are."""
        os.close(self.descriptor)
