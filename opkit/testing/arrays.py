"""From a data type's storage array to the wide one that references are computed in, and back."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from opkit.dtypes import DType, dtype_names, find_dtype
from opkit.errors import UsageError
from opkit.testing.bfloat16 import bfloat16_to_float32, to_bfloat16

__all__ = [
    "Array",
    "Input",
    "dtype_of",
    "is_float",
    "narrow",
    "storage",
    "tensors_of",
    "widen",
    "widen_input",
]

Array = NDArray[Any]
Input: TypeAlias = "Array | list[Array] | None"
"""One input of a call: a list where it is dynamic, None where it is left out."""

_FLOATS = {"float16", "float32", "bfloat16", "float64"}


def is_float(dtype: DType) -> bool:
    """Whether values of `dtype` have a fraction, a NaN and infinities."""
    return dtype.name in _FLOATS


def dtype_of(array: Array, name: str | DType | None = None) -> DType:
    """Return the row of `name`, or the one of the array where no name is given.

    Raises:
        UsageError: no such data type, or an array that does not store it.
    """
    if isinstance(name, DType):
        dtype = name
    else:
        wanted = array.dtype.name if name is None else name
        found = find_dtype(wanted)
        if found is None:
            raise UsageError(
                f'"{wanted}" is not a data type', help="one of " + ", ".join(dtype_names())
            )
        dtype = found
    if array.dtype != dtype.numpy and array.dtype.name != dtype.name:
        raise UsageError(
            f"an array of {array.dtype} does not store {dtype.name}",
            help=f"pass an array of {dtype.numpy}",
        )
    return dtype


def storage(array: Array, dtype: DType) -> Array:
    """Return the array as its carrier type; ml_dtypes' bfloat16 becomes uint16 without a copy."""
    return array.view(np.uint16) if array.dtype != dtype.numpy else array


def widen(array: Array, dtype: DType) -> Array:
    """Return stored values exactly: floats as float64, whole numbers as int64 (uint64 stays)."""
    if dtype.name == "bfloat16":
        return bfloat16_to_float32(storage(array, dtype)).astype(np.float64)
    if is_float(dtype):
        return array.astype(np.float64)
    return array if dtype.name in ("uint64", "bool") else array.astype(np.int64)


def widen_input(value: Input, dtype: DType) -> Input:
    """Return an input with its stored values exactly, as `widen`."""
    if isinstance(value, list):
        return [widen(array, dtype) for array in value]
    return None if value is None else widen(value, dtype)


def tensors_of(inputs: Iterable[Input]) -> list[Array]:
    """Return the arrays of all inputs, those of a list one after the other."""
    flat: list[Array] = []
    for value in inputs:
        flat += value if isinstance(value, list) else [] if value is None else [value]
    return flat


def narrow(values: Array, dtype: DType) -> Array:
    """Return wide values as `dtype` is stored, floats rounded to nearest even."""
    if dtype.name == "bfloat16":
        return to_bfloat16(values)
    with np.errstate(over="ignore"):
        return values.astype(dtype.numpy)
