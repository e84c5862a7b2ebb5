"""What the settings of operators may be: a rule for each name.

Settings come from formulas and programs that people write. Whatever rule of shapes reads them may
count on what the rules here promise: axes that exist, whole numbers where those count something.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from opkit.errors import UsageError

from .dimensions import is_dimension
from .operator import Operator
from .setting_values import Settings

__all__ = ["checked_settings"]


class _Unfit(Exception):
    """A value that a setting cannot have; the text says what it is expected to be."""


def checked_settings(row: Operator, given: Mapping[str, Any], rank: int) -> Settings:
    """Return all settings of a call, in the one form that its rules and kernels read: single
    numbers as pairs where pairs are wanted, axes from 0 where elements move along them.

    Args:
        given: the settings that the call names.
        rank: of its first tensor; 0 where it takes none.
    Raises:
        UsageError: a setting is unknown, lacks or is of the wrong kind, or names an axis that does
            not exist.
    """
    given = row.settings(given)
    return Settings((name, _read(row, name, value, rank)) for name, value in given.items())


def _read(row: Operator, name: str, value: Any, rank: int) -> Any:
    if row.name == "stack":
        rank += 1
    # None is a value of its own where it is the default.
    if value is None and row.parameters[name] is None:
        return None
    rule = _rule_of_axis(row) if name == "axis" else _RULES.get(name)
    if rule is None:
        return value
    try:
        return rule(value, rank)
    except _Unfit as err:
        raise UsageError(f"{name} is {_text(value)}, expected {err}") from None


def _text(value: Any) -> str:
    return repr(value) if isinstance(value, str | bytes) else str(value)


def _is_whole(value: Any) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def _whole(value: Any, _: int) -> int:
    if not _is_whole(value):
        raise _Unfit("a whole number")
    return int(value)


def _positive(value: Any, _: int) -> int:
    if not _is_whole(value) or value < 1:
        raise _Unfit("a whole number from 1")
    return int(value)


def _size(value: Any, _: int) -> Any:
    if not _is_whole(value) and not is_dimension(value):
        raise _Unfit("a whole number or a size")
    return int(value) if _is_whole(value) else value


def _sizes(value: Any, _: int) -> tuple[Any, ...]:
    values = value if isinstance(value, tuple | list) else (value,)
    if not all(_is_whole(each) or is_dimension(each) for each in values):
        raise _Unfit("sizes, one for each axis")
    return tuple(int(each) if _is_whole(each) else each for each in values)


def _number(value: Any, _: int) -> Any:
    if not isinstance(value, int | float | np.number | np.bool_):
        raise _Unfit("a number")
    return value


def _truth(value: Any, _: int) -> bool:
    if not isinstance(value, bool | np.bool_) and not (_is_whole(value) and value in (0, 1)):
        raise _Unfit("True or False")
    return bool(value)


def _axis(value: Any, rank: int) -> int:
    if not _is_whole(value) or not -rank <= value < rank:
        raise _Unfit(
            f"an axis from {-rank} to {rank - 1}" if rank else "none: a number has no axes"
        )
    return int(value) % rank


def _rule_of_axis(row: Operator) -> Callable[[Any, int], Any]:
    if row.name in ("concat", "concat_slices", "slice", "take"):
        # Whose kernels count axes from 0.
        return _axis
    several = row.kind in ("reduction", "elementwise") or row.name == "whole_sum"
    return _axes if several else _single_axis


def _single_axis(value: Any, rank: int) -> int:
    _axis(value, rank)
    return int(value)


def _axes(value: Any, rank: int) -> Any:
    for each in value if isinstance(value, tuple | list) else (value,):
        _axis(each, rank)
    return value


def _order(value: Any, rank: int) -> tuple[int, ...]:
    if not isinstance(value, tuple | list) or not all(_is_whole(each) for each in value):
        raise _Unfit("an order of the axes, such as (1, 0)")
    return tuple(int(each) % rank if -rank <= each < rank else int(each) for each in value)


def _widths(value: Any, rank: int) -> Any:
    fits = isinstance(value, tuple | list) and len(value) == rank
    if not fits or not all(isinstance(e, tuple | list) and len(e) == 2 for e in value):
        raise _Unfit(f"{rank} pairs of elements before and behind, one for each axis")
    if not all((_is_whole(each) and each >= 0) or is_dimension(each) for e in value for each in e):
        raise _Unfit("pairs of whole numbers from 0")
    return value


def _pair(least: int) -> Callable[[Any, int], tuple[int, int]]:
    def rule(value: Any, _: int) -> tuple[int, int]:
        values = tuple(value) if isinstance(value, tuple | list) else (value, value)
        if len(values) != 2 or not all(_is_whole(each) and each >= least for each in values):
            raise _Unfit(f"a whole number from {least}, or a pair of them")
        return int(values[0]), int(values[1])

    return rule


def _one_of(*texts: str) -> Callable[[Any, int], str]:
    def rule(value: Any, _: int) -> str:
        if value not in texts:
            raise _Unfit(" or ".join(map(repr, texts)))
        return str(value)

    return rule


_RULES: Mapping[str, Callable[[Any, int], Any]] = {
    "add": _truth,
    "ahead": _size,
    "alpha": _number,
    "approximate": _one_of("none", "tanh"),
    "axes": _order,
    "causal": _truth,
    "correction": _whole,
    "count": _size,
    "descending": _truth,
    "dilation": _pair(1),
    "epsilon": _number,
    "groups": _positive,
    "high": _number,
    "join": _one_of("max", "min", "multiply"),
    "k": _size,
    "keepdims": _truth,
    "kernel": _pair(1),
    "largest": _truth,
    "low": _number,
    "p": _number,
    "padding": _pair(0),
    "right": _truth,
    "scale": _number,
    "shape": _sizes,
    "slope": _number,
    "start": _size,
    "step": _positive,
    "stop": _size,
    "stream": _whole,
    "stride": _pair(1),
    "transpose_a": _truth,
    "transpose_b": _truth,
    "value": _number,
    "widths": _widths,
}
