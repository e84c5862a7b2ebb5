"""What callers pass, as tensors: arrays with the names of their data types."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from opkit.dtypes import DTYPES, find_dtype
from opkit.errors import UsageError
from opkit.service.workers import Inputs, Tensor

__all__ = ["bind"]

_NAMES = {np.dtype(row.numpy): row.name for row in DTYPES if row.numpy == row.name}


def bind(
    operator: str,
    inputs: Sequence[npt.ArrayLike | Sequence[npt.ArrayLike] | None],
    dtypes: Sequence[str | None] | None,
) -> Inputs:
    """Return inputs as tensors: None for one left out, a list for a dynamic one.

    Args:
        dtypes: names where NumPy's own do not say it: bfloat16 is carried as uint16.
    Raises:
        UsageError: no such data type, or an array that does not carry it.
    """
    if dtypes is not None and len(dtypes) != len(inputs):
        raise UsageError(f"{operator}: {len(inputs)} inputs but {len(dtypes)} dtypes")
    found: list[Tensor | list[Tensor] | None] = []
    for index, value in enumerate(inputs):
        name = None if dtypes is None else dtypes[index]
        if value is None:
            found.append(None)
        elif isinstance(value, (list, tuple)) and any(hasattr(item, "dtype") for item in value):
            found.append([_tensor(operator, index, item, name) for item in value])
        else:
            found.append(_tensor(operator, index, value, name))
    return found


def _tensor(operator: str, index: int, value: Any, name: str | None) -> Tensor:
    try:
        array = np.asarray(value)
    except ValueError as err:
        raise UsageError(f"{operator}: input {index} is no array: {err}") from err
    if name is None:
        known = _NAMES.get(array.dtype)
        if known is not None:
            return array, known
        row = find_dtype(array.dtype.name)
    else:
        row = find_dtype(name)
    if row is None or row.numpy is None:
        raise UsageError(
            f"{operator}: input {index}: {name or array.dtype.name} is not a data type",
            help="one of " + ", ".join(row.name for row in DTYPES),
        )
    if array.dtype.name == row.name != row.numpy:
        # A bfloat16 that NumPy lacks is carried by its bits.
        array = array.view(row.numpy)
    if array.dtype.name != row.numpy:
        raise UsageError(
            f"{operator}: input {index}: {row.name} is carried as {row.numpy}, and the array is"
            f" {array.dtype.name}"
        )
    return array.astype(row.numpy, copy=False), row.name
