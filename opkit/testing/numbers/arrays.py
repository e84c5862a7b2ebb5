"""From a data type's storage array to the wide one that references are computed in, and back."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from opkit.bfloat16 import bfloat16_to_float32, to_bfloat16
from opkit.dtypes import COMPLEX_DTYPES, DType, dtype_names, find_dtype, find_tensor_dtype
from opkit.errors import UsageError

__all__ = [
    "Array",
    "Input",
    "complex_parts",
    "dtype_of",
    "is_complex",
    "is_float",
    "join_parts",
    "narrow",
    "part_dtype",
    "storage",
    "tensors_of",
    "wide_parts",
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


def is_complex(dtype: DType) -> bool:
    """Whether values of `dtype` are pairs of floats."""
    return dtype in COMPLEX_DTYPES


def part_dtype(dtype: DType) -> DType:
    """Return the type of a complex one's real and imaginary parts."""
    found = find_dtype("float16" if dtype.name == "complex32" else "float32")
    assert found is not None
    return found


def complex_parts(array: Array, dtype: DType) -> tuple[Array, DType]:
    """Return stored complex numbers as floats, real and imaginary parts on a last axis of two."""
    part = part_dtype(dtype)
    contiguous = np.ascontiguousarray(array).reshape(array.shape)
    return contiguous.reshape(-1).view(np.dtype(part.numpy)).reshape(*array.shape, 2), part


def wide_parts(values: Array) -> Array:
    """Return wide complex numbers, flat, as real and imaginary parts in turn."""
    return np.ascontiguousarray(values, np.complex128).reshape(-1).view(np.float64)


def join_parts(parts: Array, dtype: DType) -> Array:
    """Return floats with real and imaginary parts on a last axis of two as `dtype` is stored."""
    flat = np.ascontiguousarray(parts).reshape(-1).view(np.dtype(dtype.numpy))
    return flat.reshape(parts.shape[:-1])


def dtype_of(array: Array, name: str | DType | None = None) -> DType:
    """Return the row of `name`, or the one of the array where no name is given.

    Raises:
        UsageError: no such data type, or an array that does not store it.
    """
    if isinstance(name, DType):
        dtype = name
    else:
        wanted = array.dtype.name if name is None else name
        found = find_tensor_dtype(wanted)
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
    """Return stored values exactly: floats as float64, whole numbers as int64 (uint64 stays),
    complex numbers as complex128."""
    if is_complex(dtype):
        parts, part = complex_parts(array, dtype)
        wide: Array = widen(parts, part).reshape(-1).view(np.complex128).reshape(array.shape)
        return wide
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
    if is_complex(dtype):
        parts = wide_parts(values).reshape(*values.shape, 2)
        return join_parts(narrow(parts, part_dtype(dtype)), dtype)
    if dtype.name == "bfloat16":
        return to_bfloat16(values)
    with np.errstate(over="ignore"):
        return values.astype(dtype.numpy)
