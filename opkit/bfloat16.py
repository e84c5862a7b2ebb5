"""bfloat16 in NumPy, which lacks it: carried as the uint16 of its bits."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["bfloat16_to_float32", "to_bfloat16"]

_QUIET_NAN = np.uint16(0x7FC0)


def to_bfloat16(values: NDArray[np.floating[Any]]) -> NDArray[np.uint16]:
    """Return floats as bfloat16 bits, rounded once, to nearest, ties to even.

    Args:
        values: float16, float32 or float64, any shape.
    Overflow becomes infinity and every NaN the quiet NaN of its sign.
    """
    with np.errstate(over="ignore"):
        single = np.asarray(values, dtype=np.float32)
    bits = single.view(np.uint32)
    if values.dtype == np.float64:
        # Round to odd first: a lost bit stays visible, so that the second rounding is the only one.
        inexact = (single != values) & ~np.isnan(values)
        truncated = np.where(np.abs(single) > np.abs(values), bits - np.uint32(1), bits)
        bits = np.where(inexact, truncated | np.uint32(1), bits)
    kept_is_odd = (bits >> np.uint32(16)) & np.uint32(1)
    rounded = ((bits + np.uint32(0x7FFF) + kept_is_odd) >> np.uint32(16)).astype(np.uint16)
    nan = ((bits >> np.uint32(16)).astype(np.uint16) & np.uint16(0x8000)) | _QUIET_NAN
    result: NDArray[np.uint16] = np.where(np.isnan(values), nan, rounded)
    return result


def bfloat16_to_float32(bits: NDArray[np.uint16]) -> NDArray[np.float32]:
    """Return bfloat16 bits as float32, exactly."""
    upper = np.asarray(bits, dtype=np.uint16).astype(np.uint32) << np.uint32(16)
    result: NDArray[np.float32] = upper.view(np.float32)
    return result
