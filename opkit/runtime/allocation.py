"""Arrays that begin where the device's memory gives tensors their place.

A kernel may compute with addresses, such as where a cache line begins. NumPy's arrays begin at any
multiple of 16 bytes, another one in every run.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["BEGIN_BYTES", "allocated", "zeros", "zeros_of_bytes"]

BEGIN_BYTES = 512
"""Tensors begin at multiples of it. Source: torch_npu's NPUCachingAllocator, rounding of sizes."""


def zeros(shape: Sequence[int], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return an array of zeros that begins like a tensor of the device's.

    Raises:
        MemoryError, ValueError: as numpy.zeros.
    """
    return zeros_of_bytes(math.prod(shape) * dtype.itemsize).view(dtype).reshape(shape)


def zeros_of_bytes(size_bytes: int) -> NDArray[np.uint8]:
    """Return as `zeros`, of bytes.

    Raises:
        MemoryError, ValueError: as numpy.zeros.
    """
    memory = np.zeros(size_bytes + BEGIN_BYTES, np.uint8)
    begin = -memory.ctypes.data % BEGIN_BYTES
    return memory[begin : begin + size_bytes]


def allocated(array: NDArray[Any]) -> NDArray[Any]:
    """Return an array as it is, or copied to where a tensor of the device's may begin."""
    if array.ctypes.data % BEGIN_BYTES == 0:
        return array
    copied = zeros(array.shape, array.dtype)
    copied[...] = array
    return copied
