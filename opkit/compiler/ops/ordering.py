"""Rows of the operators that order an axis: sorting, the largest k, the place of an extreme."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from opkit.errors import UsageError

from ..ir import (
    REQUIRED,
    GraphError,
    Operator,
    Settings,
    Shape,
    Tensor,
    Value,
    as_first,
    fixed_size,
    is_floating,
    normal_axes,
    product,
    reduced,
    shape_text,
)
from .scans import count_up

__all__ = ["MOST_SEARCHED", "MOST_SORTED", "ROWS"]

MOST_SORTED = 7680
"""Elements of a line that one core sorts in its unified buffer: two keys and two places each."""
MOST_SEARCHED = 16383
"""Edges that one core holds in its unified buffer."""
_PART = 4096
"""Elements of a longer line whose largest are found at once."""
_SORTED = ("float16", "bfloat16", "float32", "int8", "uint8", "int16", "int32", "bool")
_WIDE = ("float64",)
"""What references are computed in, and no kernel."""


def _checked(tensors: Sequence[Tensor], settings: Settings) -> int:
    (x,) = tensors
    if x.dtype not in (*_SORTED, *_WIDE):
        raise UsageError(f"{x.dtype} is not ordered", help=f"there are {', '.join(_SORTED)}")
    return settings.axis(len(x.shape))


def _sorted_shape(tensors: Sequence[Tensor], settings: Settings) -> Shape:
    axis = _checked(tensors, settings)
    shape = list(tensors[0].shape)
    extent, count = shape[axis], settings["count"]
    if isinstance(extent, int) and extent > MOST_SORTED:
        raise UsageError(
            f"{extent} elements do not fit a core that sorts them: at most {MOST_SORTED}",
            help="topk takes longer axes",
        )
    if count is not None:
        shape[axis] = _count(count, extent)
    return tuple(shape)


def _count(count: object, extent: object) -> int:
    if not isinstance(count, int) or count < 1 or (isinstance(extent, int) and count > extent):
        raise UsageError(f"the first {count} of {extent} elements")
    return count


def _largest_shape(tensors: Sequence[Tensor], settings: Settings) -> Shape:
    axis = _checked(tensors, settings)
    shape = list(tensors[0].shape)
    shape[axis] = _count(settings["k"], shape[axis])
    return tuple(shape)


def _extreme_shape(tensors: Sequence[Tensor], settings: Settings) -> Shape:
    _checked(tensors, settings)
    return reduced(tensors, settings)


def _searched_shape(tensors: Sequence[Tensor], settings: Settings) -> Shape:
    edges, x = tensors
    lines = tuple(edges.shape[:-1])
    if not edges.shape or (lines and lines != tuple(x.shape[:-1])):
        raise UsageError(
            f"edges of {shape_text(edges.shape)} for numbers of {shape_text(x.shape)}",
            help="give one line of edges, or one for each line of numbers",
        )
    floats = ("float32", *_WIDE)
    if edges.dtype not in floats or x.dtype not in floats:
        raise UsageError(
            f"{x.dtype} is looked for among {edges.dtype}, expected float32", help="cast both"
        )
    if isinstance(edges.shape[-1], int) and edges.shape[-1] > MOST_SEARCHED:
        raise UsageError(
            f"{edges.shape[-1]} edges do not fit a core: at most {MOST_SEARCHED}",
            help="look among parts of them, and add up",
        )
    return x.shape


def _np_searched(edges: Any, x: Any, right: bool) -> Any:
    side: Any = "right" if right else "left"
    if edges.ndim == 1:
        return np.searchsorted(edges, x, side=side).astype(np.int32)
    found = np.empty(x.shape, np.int32)
    for at in np.ndindex(x.shape[:-1]):
        found[at] = np.searchsorted(edges[at], x[at], side=side)
    return found


def _place_dtype(_: Sequence[Tensor], __: Settings) -> str:
    return "int32"


def _np_places(x: Any, axis: int, descending: bool, count: int | None) -> Any:
    """Equal elements stay in their order; what is no number is above all others."""
    if descending:
        turned = np.argsort(np.flip(x, axis), axis=axis, kind="stable")
        places = x.shape[axis] - 1 - np.flip(turned, axis)
    else:
        places = np.argsort(x, axis=axis, kind="stable")
    return np.take(places, np.arange(count), axis=axis) if count is not None else places


def _np_sorted(x: Any, axis: int, descending: bool, count: int | None) -> Any:
    return np.take_along_axis(x, _np_places(x, axis, descending, count), axis)


def _np_extreme(function: Callable[..., Any]) -> Callable[..., Any]:
    def reference(x: Any, axis: int, keepdims: bool) -> Any:
        return function(x, axis=axis, keepdims=keepdims)

    return reference


def _topk(x: Value, k: int, axis: int, largest: bool) -> Value:
    return _first(x, k, axis, largest)[0]


def _topk_places(x: Value, k: int, axis: int, largest: bool) -> Value:
    return _first(x, k, axis, largest)[1]


def _first(x: Value, k: int, axis: int, largest: bool) -> tuple[Value, Value]:
    """Return the k first elements of an ordered axis and their places; of a long axis those of
    its parts first, then those among them."""
    (axis,) = normal_axes(axis, x.ndim)
    extent = x.shape[axis]
    if isinstance(extent, int) and _are_few(x, axis, extent, k):
        return _by_comparing(x, k, axis, largest)
    if not isinstance(extent, int) or extent <= MOST_SORTED:
        settings = {"axis": axis, "descending": largest, "count": k}
        return x.apply("sort", **settings), x.apply("argsort", **settings)
    if 2 * k > _PART:
        raise GraphError(
            f"the first {k} of {extent} elements: at most {_PART // 2} of an axis that is longer"
            f" than {MOST_SORTED}",
            location=x.builder.location,
        )
    order = [*(at for at in range(x.ndim) if at != axis), axis]
    turned = x.transpose(*order)
    lines = product(turned.shape[:-1])
    parts = -(-extent // _PART)
    widths = ((0, 0), (0, parts * _PART - extent))
    whole = turned.reshape(lines, extent).apply("pad", widths=widths, value=_last(x, largest))
    split = whole.reshape(lines * parts, _PART)
    values, places = _first(split, k, 1, largest)
    begins = count_up(x, parts).reshape(1, parts, 1) * _PART
    places = (places.reshape(lines, parts, k) + begins).reshape(-1)
    values, among = _first(values.reshape(lines, parts * k), k, 1, largest)
    there = among + count_up(x, lines).reshape(lines, 1) * (parts * k)
    places = places.apply("take", there, axis=0)
    back = sorted(range(x.ndim), key=order.__getitem__)
    shape = (*turned.shape[:-1], k)
    return values.reshape(*shape).transpose(*back), places.reshape(*shape).transpose(*back)


_MOST_COMPARED = 24
"""Pairs of elements of one line that are compared: each is some operators of a kernel."""


def _are_few(x: Value, axis: int, extent: int, k: int) -> bool:
    """Return whether elements across lines are ordered by comparing them: neighbours in lines are
    then side by side in one vector, and lines that sorting instructions take are 32 long."""
    pairs = k * extent - k * (k + 1) // 2
    return axis < x.ndim - 1 and 0 < pairs <= _MOST_COMPARED and is_floating(x.dtype)


def _by_comparing(x: Value, k: int, axis: int, largest: bool) -> tuple[Value, Value]:
    """Return the k first elements of an ordered axis and their places: in each round the next one
    comes forward over its neighbours, so that equal ones stay in their order."""
    extent = fixed_size(x.shape[axis])
    lines = [x.apply("slice", axis=axis, start=at, stop=at + 1, step=1) for at in range(extent)]
    places = [lines[0].builder.constant(float(at), "float32") for at in range(extent)]
    for front in range(k):
        for at in range(extent - 2, front - 1, -1):
            (a, b), (p, q) = lines[at : at + 2], places[at : at + 2]
            # What is no number is above all others.
            low, high = (b, a) if largest else (a, b)
            stays = low.apply("less_equal", high)
            stays = stays.apply("logical_or", high.apply("not_equal", high))
            lines[at : at + 2] = stays.apply("where", a, b), stays.apply("where", b, a)
            places[at : at + 2] = stays.apply("where", p, q), stays.apply("where", q, p)
    parts = lines[:k]
    found = [each.astype("int32") for each in places[:k]]
    if k == 1:
        return parts[0], found[0]
    join = x.builder.apply
    return join("concat", *parts, axis=axis), join("concat", *found, axis=axis)


def _last(x: Value, largest: bool) -> float | int:
    """Return what comes behind all elements, or with the last of them."""
    if is_floating(x.dtype):
        return float("-inf") if largest else float("nan")
    if x.dtype == "bool":
        return 0 if largest else 1
    limits = np.iinfo(x.dtype)
    return int(limits.min if largest else limits.max)


def _grad_sorted(
    g: Value, x: Value, y: Value, axis: int, descending: bool, count: int | None
) -> Sequence[Value | None]:
    places = x.apply("argsort", axis=axis, descending=descending, count=count)
    zeros = x.builder.constant(0.0, g.dtype).apply("broadcast_to", shape=x.shape)
    return (zeros.apply("put_along", places, g, axis=axis),)


_SORTING = {"axis": -1, "descending": False, "count": None}
_LARGEST = {"k": REQUIRED, "axis": -1, "largest": True}
_EXTREME = {"axis": -1, "keepdims": False}

ROWS = (
    Operator(
        *("sort", 1, "line", _sorted_shape, as_first, _np_sorted),
        gradient=_grad_sorted,
        pto="sort",
        aten="sort",
        parameters=_SORTING,
    ),
    Operator(
        *("argsort", 1, "line", _sorted_shape, _place_dtype, _np_places),
        aten="argsort",
        parameters=_SORTING,
    ),
    Operator(
        *("topk", 1, "line", _largest_shape, as_first),
        lambda x, k, axis, largest: _np_sorted(x, axis, largest, k),
        expand=_topk,
        aten="topk",
        parameters=_LARGEST,
    ),
    Operator(
        *("topk_places", 1, "line", _largest_shape, _place_dtype),
        lambda x, k, axis, largest: _np_places(x, axis, largest, k),
        expand=_topk_places,
        parameters=_LARGEST,
    ),
    Operator(
        *("argmax", 1, "line", _extreme_shape, _place_dtype, _np_extreme(np.argmax)),
        aten="argmax",
        parameters=_EXTREME,
    ),
    Operator(
        *("argmin", 1, "line", _extreme_shape, _place_dtype, _np_extreme(np.argmin)),
        aten="argmin",
        parameters=_EXTREME,
    ),
    # How many of the sorted edges are less than each number, or not more, for right.
    Operator(
        *("search", 2, "search", _searched_shape, _place_dtype, _np_searched),
        aten="searchsorted",
        parameters={"right": False},
    ),
)
