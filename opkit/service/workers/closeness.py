"""How far results are from each other, in values: whatever their data types are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from opkit.bfloat16 import bfloat16_to_float32
from opkit.service.workers.shared_memory import Tensor

__all__ = ["MODEL_TOLERANCE", "far_off", "largest_difference", "readable"]

MODEL_TOLERANCE = 0.05
"""For whole models where settings name none: products in int8 stay below it."""

_SMALLEST = float(np.finfo(np.float64).tiny)


def readable(tensor: Tensor) -> npt.NDArray[Any]:
    """Return a tensor's values: bfloat16, which is carried by its bits, as float32."""
    array, dtype = tensor
    return bfloat16_to_float32(array) if dtype == "bfloat16" else array


def largest_difference(mine: Sequence[Tensor], theirs: Sequence[Tensor]) -> float | None:
    """Return the largest absolute difference of two results; 0 for the same bits.

    None where they cannot be compared: other shapes, another number of outputs, fractions and whole
    numbers, or a NaN.
    """
    if len(mine) != len(theirs):
        return None
    largest = 0.0
    for left, right in zip(mine, theirs, strict=True):
        if left[0].shape != right[0].shape:
            return None
        if left[1] == right[1] and left[0].tobytes() == right[0].tobytes():
            continue
        one, other = readable(left), readable(right)
        if (one.dtype.kind == "f") != (other.dtype.kind == "f"):
            return None
        with np.errstate(all="ignore"):
            difference = np.abs(one.astype(np.float64) - other.astype(np.float64)).max(initial=0)
        if not np.isfinite(difference):
            return None
        # Zeros of two signs, or of two data types, differ in bits and not in value.
        largest = max(largest, float(difference), _SMALLEST)
    return largest


def far_off(outputs: Sequence[Tensor], wanted: Sequence[Tensor], tolerance: float) -> str:
    """Return which output is wrong and where; "" where all are near enough.

    An element may be off by `tolerance` times the largest finite magnitude of the output that is
    wanted. NaN and infinities stand where they are wanted and nowhere else; whole numbers are
    equal.
    """
    if len(outputs) != len(wanted):
        return f"{len(outputs)} outputs, and the reference has {len(wanted)}"
    for index, (given, right) in enumerate(zip(outputs, wanted, strict=True)):
        if given[0].shape != right[0].shape:
            shapes = f"{list(given[0].shape)}, and the reference's {list(right[0].shape)}"
            return f"output {index} has the shape {shapes}"
        is_whole = readable(right).dtype.kind != "f"
        actual, expected = (readable(each).astype(np.float64) for each in (given, right))
        finite = np.abs(expected[np.isfinite(expected)])
        scale = float(finite.max(initial=0.0))
        same = (actual == expected) | (np.isnan(actual) & np.isnan(expected))
        with np.errstate(all="ignore"):
            error = np.where(same, 0.0, np.abs(actual - expected))
        error = np.where(np.isfinite(error), error, np.inf)
        limit = 0.0 if is_whole else tolerance * scale
        worst = float(error.max(initial=0.0))
        if worst > limit:
            place = tuple(int(each) for each in np.unravel_index(error.argmax(), error.shape))
            of_scale = f"{worst / scale:.3g} of its largest value" if scale else f"{worst:.3g}"
            return (
                f"output {index} at {list(place)} is {actual[place]:.6g}, and the reference's"
                f" {expected[place]:.6g}: off by {of_scale}, {0.0 if is_whole else tolerance:g} is"
                " allowed"
            )
    return ""
