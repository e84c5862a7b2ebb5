"""Lists of arrays as the one array that formulas see: along its first axis they lie."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

__all__ = ["joined_arrays", "split_array"]


def joined_arrays(arrays: Sequence[Any], axes: Sequence[str | int]) -> Any:
    """Return the arrays of a list as one.

    Args:
        arrays: NumPy arrays, one at least.
        axes: of the list: how many there are, then the axes of each; or `...`, then those in which
            all of them end, so that they lie one below the other.

    Raises:
        ValueError: their shapes do not agree, or there are none.
    """
    import numpy as np

    if axes[0] != "...":
        return np.stack([np.asanyarray(array) for array in arrays])
    return np.concatenate([_rows(array, len(axes) - 1) for array in arrays])


def split_array(array: Any, like: Sequence[Any], axes: Sequence[str | int]) -> list[Any]:
    """Return the part of each array of a list that `joined_arrays` would make `array` of.

    Args:
        array: one.
        like: a list of arrays with the shapes of those to return.
        axes: as of `joined_arrays`.
    """
    import numpy as np

    if axes[0] != "...":
        return list(array)
    rows = [len(_rows(each, len(axes) - 1)) for each in like]
    parts = np.split(array, np.cumsum(rows)[:-1])
    return [part.reshape(np.shape(each)) for part, each in zip(parts, like, strict=True)]


def _rows(array: Any, last: int) -> Any:
    """Return an array with all axes but the last so many as one."""
    import numpy as np

    whole = np.asanyarray(array)
    first = whole.ndim - last
    return whole.reshape(math.prod(whole.shape[:first]), *whole.shape[first:])
