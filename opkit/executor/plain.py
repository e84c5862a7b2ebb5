"""Arrays, and what goldens take and give, as plain values: what a pickle needs no class for."""

from __future__ import annotations

import pickle
from typing import Any, TypeAlias

import numpy as np

__all__ = ["Plain", "plain_array", "plain_value", "read_array", "read_value"]

Plain: TypeAlias = Any
"""Numbers, texts, bytes, None, and lists, tuples and dicts of them."""

_ARRAY = "\0array"


def plain_array(array: np.ndarray[Any, Any]) -> Plain:
    """Return an array of numbers: a mark, its NumPy data type, its shape and its own bytes.

    Raises:
        TypeError: its elements are objects.
    """
    whole = np.ascontiguousarray(array)
    if whole.dtype.hasobject:
        raise TypeError("an array of objects goes to no other process")
    return (_ARRAY, whole.dtype.str, tuple(array.shape), pickle.PickleBuffer(whole.data))


def read_array(value: Plain) -> np.ndarray[Any, Any]:
    """Return the array that `plain_array` made plain.

    Raises:
        ValueError: it is none: its process has sent something else.
    """
    try:
        mark, dtype, shape, data = value
        if mark != _ARRAY or np.dtype(dtype).hasobject:
            raise ValueError("no array of numbers")
        array: np.ndarray[Any, Any] = np.frombuffer(data, np.dtype(dtype)).reshape(shape)
        return array if isinstance(data, bytearray) else array.copy()
    except (TypeError, ValueError) as error:
        raise ValueError(f"no array: {error}") from error


def plain_value(value: Any) -> Plain:
    """Return what goes from one process to another, such as a golden's arguments, as plain values.

    Raises:
        TypeError: there is something else in it than numbers, texts, arrays and collections.
    """
    if value is None or isinstance(value, (bool, int, float, complex, str, bytes)):
        return value
    if isinstance(value, (np.ndarray, np.generic)):
        return plain_array(np.asarray(value))
    if isinstance(value, (list, tuple)):
        return [_LIST if isinstance(value, list) else _TUPLE, *map(plain_value, value)]
    if isinstance(value, dict):
        return {str(name): plain_value(each) for name, each in value.items()}
    raise TypeError(f"a value of type {type(value).__name__} goes to no other process")


_LIST, _TUPLE = "\0list", "\0tuple"


def read_value(value: Plain) -> Any:
    """Return what `plain_value` made plain.

    Raises:
        ValueError: it is nothing of the kind.
    """
    if isinstance(value, tuple):
        return read_array(value)
    if isinstance(value, list):
        if not value or value[0] not in (_LIST, _TUPLE):
            raise ValueError("no list")
        found = [read_value(each) for each in value[1:]]
        return found if value[0] == _LIST else tuple(found)
    if isinstance(value, dict):
        return {name: read_value(each) for name, each in value.items()}
    return value
