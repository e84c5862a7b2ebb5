"""Attribute defaults: JSON values, and the string spellings that msopgen writes."""

from __future__ import annotations

import json
import math
from typing import cast

from opkit.schema.json_text import Json
from opkit.schema.spec import AttrValue

__all__ = ["ATTR_SETTERS", "parse_default"]

ATTR_SETTERS = {
    "int": "Int",
    "float": "Float",
    "bool": "Bool",
    "string": "String",
    "list_int": "ListInt",
    "list_float": "ListFloat",
    "list_bool": "ListBool",
    "list_list_int": "ListListInt",
}
"""OpDef's and REG_OP's name of each attribute type that both have."""

_INT64_LIMIT = 2**63


def parse_default(attr_type: str, value: Json) -> AttrValue:
    """Return the default of an attribute of `attr_type`, from a JSON value or its string spelling.

    Raises:
        ValueError: the value does not spell one; the text says what was expected.
    """
    if attr_type == "list_list_int":
        return _parse_lists(value)
    if attr_type.startswith("list_"):
        return _parse_list(attr_type.removeprefix("list_"), value)
    return _parse_scalar(attr_type, value)


def _parse_scalar(attr_type: str, value: Json) -> int | float | bool | str:
    if attr_type == "string":
        if isinstance(value, str):
            return value
        raise ValueError("expected a string")
    if attr_type == "bool":
        return _parse_bool(value)
    if attr_type == "int":
        return _parse_int(value)
    return _parse_float(value)


def _parse_list(item_type: str, value: Json) -> AttrValue:
    if isinstance(value, str):
        text = value.strip()
        if not (text.startswith("[") and text.endswith("]")):
            raise ValueError(f'expected a list of {item_type}, such as [1, 2] or "[1,2]"')
        inner = text[1:-1].strip()
        items: list[Json] = [part.strip() for part in inner.split(",")] if inner else []
    elif isinstance(value, list):
        items = value
    else:
        raise ValueError(f"expected a list of {item_type}")
    if item_type == "bool":
        return tuple(_parse_bool(item) for item in items)
    if item_type == "int":
        return tuple(_parse_int(item) for item in items)
    return tuple(_parse_float(item) for item in items)


def _parse_lists(value: Json) -> tuple[tuple[int, ...], ...]:
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            value = None
    if not isinstance(value, list) or not all(isinstance(item, list) for item in value):
        raise ValueError('expected a list of lists of int, such as [[1], [2, 3]] or "[[1],[2,3]]"')
    return tuple(tuple(_parse_int(item) for item in cast("list[Json]", row)) for row in value)


def _parse_bool(value: Json) -> bool:
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value.strip().lower() in ("true", "false"):
        return value.strip().lower() == "true"
    if value in (0, 1, "0", "1"):
        return value in (1, "1")
    raise ValueError('expected true or false, or "true" or "false"')


def _parse_int(value: Json) -> int:
    if isinstance(value, str):
        try:
            value = int(value.strip())
        except ValueError:
            raise ValueError('expected an integer, such as 1 or "1"') from None
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError('expected an integer, such as 1 or "1"')
    if not -_INT64_LIMIT <= value < _INT64_LIMIT:
        raise ValueError("expected an integer that fits 64 bits")
    return value


def _parse_float(value: Json) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise ValueError('expected a number, such as 0.5 or "0.5"')
    try:
        number = float(value)
    except (ValueError, OverflowError):
        raise ValueError('expected a number, such as 0.5 or "0.5"') from None
    if not math.isfinite(number):
        raise ValueError("expected a finite number")
    return number
