"""Records and errors as plain values, and back: what comes is checked against what was declared.

A record is a frozen dataclass of numbers, texts, paths, arrays, further records, and collections
and unions of these. Of what a process says, no type is taken but the declared one, and no field but
its own: so the process cannot choose what is made of its words.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import types
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Union, get_args, get_origin, get_type_hints

import numpy as np

from opkit import errors
from opkit.errors import OpkitError
from opkit.executor.plain import Plain, plain_array, read_array

__all__ = ["plain_error", "plain_record", "read_error", "read_record"]

_KIND = "kind"


def plain_record(value: Any) -> Plain:
    """Return a record, or a value that one may hold, as plain values.

    Raises:
        TypeError: there is something in it that no record holds.
    """
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, np.ndarray):
        return plain_array(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {
            field.name: plain_record(getattr(value, field.name))
            for field in dataclasses.fields(value)
        }
        return {_KIND: type(value).__name__, **fields}
    if isinstance(value, frozenset):
        return sorted(map(plain_record, value), key=repr)
    if isinstance(value, (tuple, list)):
        return list(map(plain_record, value))
    raise TypeError(f"a value of type {type(value).__name__} is in no record")


def read_record(kind: Any, value: Plain) -> Any:
    """Return the value of a declared type that `plain_record` made plain.

    Args:
        kind: a class of records, or another type that one may hold, such as `tuple[int, ...]`.
    Raises:
        ValueError: it is none of that type.
    """
    found = _READERS.get(kind)
    if found is not None:
        return found(value)
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        return _one_of(arguments, value)
    if origin is np.ndarray:
        return read_array(value)
    if origin in (tuple, frozenset, list):
        return origin(_elements(origin, arguments, value))
    if dataclasses.is_dataclass(kind) and isinstance(kind, type):
        hints = _hints(kind)
        if not isinstance(value, dict) or value.get(_KIND) != kind.__name__:
            raise ValueError(f"no {kind.__name__}")
        if set(value) != {_KIND, *hints}:
            raise ValueError(f"a {kind.__name__} with other fields")
        return kind(**{name: read_record(hint, value[name]) for name, hint in hints.items()})
    raise TypeError(f"{kind} is in no record")


def _elements(origin: Any, arguments: tuple[Any, ...], value: Plain) -> list[Any]:
    if not isinstance(value, list):
        raise ValueError("no list")
    if origin is not tuple or arguments[-1] is ...:
        return [read_record(arguments[0], each) for each in value]
    if len(value) != len(arguments):
        raise ValueError("a tuple of another length")
    return [read_record(hint, each) for hint, each in zip(arguments, value, strict=True)]


def _one_of(kinds: Sequence[Any], value: Plain) -> Any:
    for kind in kinds:
        try:
            return read_record(kind, value)
        except ValueError:
            continue
    raise ValueError("none of the types that there may be")


def _exactly(kind: type) -> Any:
    def read(value: Plain) -> Any:
        if type(value) is not kind:
            raise ValueError(f"no {kind.__name__}")
        return value

    return read


def _number(value: Plain) -> float:
    if type(value) not in (int, float):
        raise ValueError("no number")
    return float(value)


_READERS: Mapping[Any, Any] = {
    **{kind: _exactly(kind) for kind in (bool, int, str)},
    float: _number,
    type(None): _exactly(type(None)),
    Path: lambda value: Path(_exactly(str)(value)),
    # What a place is told apart by.
    object: lambda value: _scalar(value),
}


def _scalar(value: Plain) -> Any:
    if value is None or type(value) in (bool, int, float, str):
        return value
    raise ValueError("no number or text")


@functools.cache
def _hints(kind: type) -> Mapping[str, Any]:
    hints = get_type_hints(kind)
    return {field.name: hints[field.name] for field in dataclasses.fields(kind)}


def plain_error(error: OpkitError) -> Plain:
    """Return an error of opkit's as plain values: the nearest class of `errors`, by name."""
    kind = next(each for each in type(error).__mro__ if vars(errors).get(each.__name__) is each)
    names = set(_arguments(kind))
    fields = {
        name: str(value) if isinstance(value, Path) else value
        for name, value in vars(error).items()
        if name in names and (value is None or isinstance(value, (bool, int, float, str, Path)))
    }
    return {"error": kind.__name__, "message": error.message, "fields": fields}


def read_error(value: Plain) -> OpkitError:
    """Return the error that `plain_error` made plain, one of `errors`.

    Raises:
        ValueError: it is nothing of the kind.
    """
    if not isinstance(value, dict) or set(value) != {"error", "message", "fields"}:
        raise ValueError("no error")
    name, message, fields = value["error"], value["message"], value["fields"]
    kind = getattr(errors, name, None) if type(name) is str else None
    if not (isinstance(kind, type) and issubclass(kind, OpkitError)):
        raise ValueError("no error of opkit's")
    if type(message) is not str or not isinstance(fields, dict):
        raise ValueError("no error")
    hints = _arguments(kind)
    if not set(fields) <= set(hints):
        raise ValueError(f"a {name} with other fields")
    try:
        return kind(message, **{key: read_record(hints[key], fields[key]) for key in fields})
    except TypeError as error:
        raise ValueError(f"no {name}: {error}") from error


def _arguments(kind: type[OpkitError]) -> Mapping[str, Any]:
    """Return the types of what an error is made of, by name; its message aside."""
    hints = get_type_hints(kind.__init__)
    given = inspect.signature(kind.__init__).parameters.values()
    return {each.name: hints[each.name] for each in given if each.kind is each.KEYWORD_ONLY}
