"""Products with weights of which two in every four are zero: the chip's own instruction."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from opkit.errors import UsageError
from opkit.optimisers.native import native

__all__ = ["structured_matmul"]


def structured_matmul(x: npt.NDArray[np.int8], w: npt.NDArray[np.int8]) -> npt.NDArray[np.int32]:
    """Return `x @ w.T` where two of every four neighbours in a row of `w` are zero.

    Args:
        x: (m, k) int8, k a multiple of 64.
        w: (n, k) int8.
    Raises:
        UsageError: the types or shapes do not fit, or four neighbours have more than two weights.
    Source: Ascend C API, MmadWithSparse, which multiplies int8 only.
    """
    _check("x", x)
    _check("w", w)
    if x.shape[1] != w.shape[1]:
        raise UsageError(f"[structured_matmul] x is {x.shape} and w {w.shape}: k differs")
    c = np.zeros((x.shape[0], w.shape[0]), np.int32)
    native().structured_matmul(np.ascontiguousarray(x), np.ascontiguousarray(w), c)
    return c


def _check(name: str, array: Any) -> None:
    if array.dtype != np.int8:
        raise UsageError(
            f"[structured_matmul] {name} is {array.dtype}: the chip's instruction for 4:2 sparse"
            " weights, MmadWithSparse, takes int8 only",
            help="quantise it, or multiply with SparseMatMulOptimizer",
        )
    if array.ndim != 2:
        raise UsageError(f"[structured_matmul] {name} has the shape {array.shape}, expected 2 axes")
