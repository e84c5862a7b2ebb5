"""What processes that nobody trusts send: plain values, as JSON with the bytes of arrays behind it.

A kernel, host code or a golden can write anything to its process's pipe. What is read here becomes
numbers, texts, arrays and collections of them, or is refused: nothing in it names what to run.
"""

from __future__ import annotations

import json
import struct
from pickle import PickleBuffer
from typing import Any, TypeAlias

import numpy as np

__all__ = [
    "Plain",
    "from_bytes",
    "plain_array",
    "plain_value",
    "read_array",
    "read_value",
    "to_bytes",
]

Plain: TypeAlias = Any
"""Numbers, texts, bytes, None, and lists, tuples and dicts of them."""

_ARRAY = "\0array"
_HEAD = struct.Struct("<4sQ")
_MAGIC = b"opk\1"
_MOST_HEADER_BYTES = 1 << 26
"""Most bytes of the JSON, which takes many times its size as Python values. Arrays follow it."""


def to_bytes(value: Plain) -> bytes:
    """Return plain values as what goes through a pipe.

    Raises:
        TypeError: there is something else in it.
        ValueError: there is too much in it beside arrays.
    """
    buffers: list[memoryview] = []
    header = json.dumps(_tagged(value, buffers), separators=(",", ":")).encode()
    sizes = json.dumps([buffer.nbytes for buffer in buffers]).encode()
    header = b'{"sizes":' + sizes + b',"value":' + header + b"}"
    if len(header) > _MOST_HEADER_BYTES:
        raise ValueError(f"{len(header)} bytes of text are too many for one message")
    return b"".join((_HEAD.pack(_MAGIC, len(header)), header, *buffers))


def _tagged(value: Plain, buffers: list[memoryview]) -> Any:
    """Return a value as JSON has it: each array is a list with its kind in front."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (list, tuple)):
        kind = "list" if isinstance(value, list) else "tuple"
        return [kind, *(_tagged(each, buffers) for each in value)]
    if isinstance(value, dict):
        if not all(isinstance(name, str) for name in value):
            raise TypeError("names in messages are texts")
        return {name: _tagged(each, buffers) for name, each in value.items()}
    if isinstance(value, complex):
        return ["complex", value.real, value.imag]
    if isinstance(value, (bytes, bytearray, memoryview, PickleBuffer)):
        view = memoryview(value)
        # Nothing is no sequence of bytes to Python where it has a shape.
        buffers.append(view.cast("B") if view.nbytes else memoryview(b""))
        return ["bytes" if isinstance(value, bytes) else "buffer", len(buffers) - 1]
    raise TypeError(f"a value of type {type(value).__name__} goes to no other process")


def from_bytes(data: bytes | bytearray | memoryview) -> Plain:
    """Return the plain values of a message; buffers are views of it.

    Raises:
        ValueError: it is no such message.
    """
    try:
        magic, length = _HEAD.unpack_from(data)
        if magic != _MAGIC or length > _MOST_HEADER_BYTES:
            raise ValueError("no message")
        view = memoryview(data)
        begin = _HEAD.size + length
        header = json.loads(bytes(view[_HEAD.size : begin]))
        buffers = []
        for size in header["sizes"]:
            if type(size) is not int or not 0 <= size <= len(view) - begin:
                raise ValueError("no size")
            buffers.append(view[begin : begin + size])
            begin += size
        if begin != len(view):
            raise ValueError("no message")
        return _untagged(header["value"], buffers)
    except (struct.error, KeyError, TypeError, IndexError, RecursionError) as error:
        raise ValueError(f"no message: {error}") from error


def _untagged(value: Any, buffers: list[memoryview]) -> Plain:
    if isinstance(value, dict):
        return {name: _untagged(each, buffers) for name, each in value.items()}
    if not isinstance(value, list):
        return value
    kind, *rest = value
    if kind in ("list", "tuple"):
        found = [_untagged(each, buffers) for each in rest]
        return found if kind == "list" else tuple(found)
    if kind == "complex":
        real, imaginary = rest
        return complex(real, imaginary)
    (index,) = rest
    if kind == "bytes":
        return bytes(buffers[index])
    if kind == "buffer":
        return buffers[index]
    raise ValueError(f"no kind of value: {kind!r}")


def plain_array(array: np.ndarray[Any, Any]) -> Plain:
    """Return an array of numbers: a mark, its NumPy data type, its shape and its own bytes.

    Raises:
        TypeError: its elements are objects.
    """
    whole = np.ascontiguousarray(array)
    if whole.dtype.hasobject:
        raise TypeError("an array of objects goes to no other process")
    return (_ARRAY, whole.dtype.str, tuple(array.shape), PickleBuffer(whole.data))


def read_array(value: Plain) -> np.ndarray[Any, Any]:
    """Return the array that `plain_array` made plain.

    Raises:
        ValueError: it is none: its process has sent something else.
    """
    try:
        mark, dtype, shape, data = value
        if mark != _ARRAY or np.dtype(dtype).hasobject:
            raise ValueError("no array of numbers")
        if not memoryview(data).nbytes:
            return np.zeros(_empty(shape), np.dtype(dtype))
        array: np.ndarray[Any, Any] = np.frombuffer(data, np.dtype(dtype)).reshape(shape)
        return array if array.flags.writeable and array.flags.aligned else array.copy()
    except (TypeError, ValueError, MemoryError) as error:
        raise ValueError(f"no array: {error}") from error


def _empty(shape: Any) -> tuple[int, ...]:
    if not isinstance(shape, tuple) or 0 not in shape:
        raise ValueError("no shape of nothing")
    return shape


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
