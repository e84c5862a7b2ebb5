"""Rows of the operators that look where numbers stand among others, and that count or add up by it:
edges, histograms, bags, the k-th of a line."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from opkit.compiler import AtenCall as Call
from opkit.compiler import Operand, Refused, Value, fixed_shape, fixed_size

__all__ = ["LOOKUPS", "ROWS"]

Row = Callable[..., Any]
_IN_FLOATS = ("float32", "float16", "bfloat16", "int16", "int8", "uint8")
"""Types whose numbers float32 holds."""
_SUM, _MEAN, _MAX = 0, 1, 2
_MOST_COMPARED = 256
"""Bins whose edges all numbers are compared with."""


def _searched(edges: Value, x: Value, right: bool) -> Value:
    if edges.dtype not in _IN_FLOATS or x.dtype not in _IN_FLOATS:
        raise Refused(f"{x.dtype} is looked for among {edges.dtype} by no kernel")
    if not math.prod(fixed_shape(edges.shape)):
        raise Refused("nothing is looked for among no edges")
    lines = math.prod(fixed_shape(edges.shape[:-1]))
    wide = edges.astype("float32").reshape(*((lines,) if edges.ndim > 1 else ()), -1)
    numbers = x.astype("float32").reshape(*((lines,) if edges.ndim > 1 else ()), -1)
    return wide.apply("search", numbers, right=right).reshape(*x.shape)


def _searchsorted(
    c: Call,
    edges: Value,
    x: Value,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: Value | None = None,
) -> Value:
    if sorter is not None:
        raise Refused("edges that are in order by a sorter only have no kernel")
    return _searched(edges, x, right or side == "right")


def _bucketize(
    c: Call, x: Value, edges: Value, *, out_int32: bool = False, right: bool = False
) -> Value:
    return _searched(edges, x, right)


def _compared_with_edges(c: Call, numbers: Value, bins: int, low: float, high: float) -> Value:
    """Return how many numbers each bin has: how many are from its first on less than of the next.

    A core compares all numbers with all edges, which takes less time than putting each into its
    bin: where many numbers have few bins, they belong to few cores.
    """
    edges = np.append(_first_of_bins(bins, low, high), np.nextafter(np.float32(high), np.inf))
    there = c.constant(edges.astype(np.float32)).reshape(-1, 1)
    is_there = numbers.reshape(1, -1).apply("greater_equal", there)
    from_there = is_there.astype("float32").sum(axis=1)
    parts = [
        from_there.apply("slice", axis=0, start=first, stop=first + bins, step=1)
        for first in (0, 1)
    ]
    return parts[0] - parts[1]


def _first_of_bins(bins: int, low: float, high: float) -> Any:
    """Return the least float32 of each bin, as torch rounds what bin a number is in."""
    one = np.float32
    wanted = np.arange(bins)

    def ordered(value: Any) -> Any:
        bits = np.asarray(value, np.float32).view(np.int32).astype(np.int64)
        return np.where(bits < 0, -(bits & 0x7FFFFFFF), bits)

    def number(order: Any) -> Any:
        bits = np.where(order < 0, -order | 0x80000000, order)
        return bits.astype(np.uint32).view(np.float32)

    below = np.full(bins, ordered(one(low)) - 1)
    found = np.full(bins, ordered(one(high)))
    while np.any(found - below > 1):
        middle = (below + found) // 2
        place = (number(middle) - one(low)) * one(bins) / (one(high) - one(low))
        is_in = (np.floor(place) >= wanted) & (number(middle) >= one(low))
        found, below = np.where(is_in, middle, found), np.where(is_in, below, middle)
    return number(found)


def _histogram(c: Call, x: Value, bins: int = 100, min: float = 0.0, max: float = 0.0) -> Value:
    numbers = x.astype("float32").reshape(-1)
    if not fixed_size(numbers.shape[0]):
        raise Refused("histograms of nothing have no kernel")
    low: Operand = float(min)
    high: Operand = float(max)
    if min == max:
        if min != 0:
            raise Refused(f"bins from {min} to {max} have no kernel")
        low, high = numbers.min(axis=0, keepdims=True), numbers.max(axis=0, keepdims=True)
        is_one = low.apply("equal", high)
        low, high = is_one.apply("where", low - 1.0, low), is_one.apply("where", high + 1.0, high)
    elif min > max:
        raise Refused(f"bins from {min} to {max} have no kernel")
    elif bins <= _MOST_COMPARED:
        return _compared_with_edges(c, numbers, bins, float(min), float(max)).astype(c.dtype)
    place = ((numbers - low) * float(bins) / (high - low)).apply("floor")
    is_within = numbers.apply("greater_equal", low).apply(
        "logical_and", numbers.apply("less_equal", high)
    )
    # The last bin has its upper edge; what lies in none has one behind it.
    place = is_within.apply("where", place.apply("minimum", float(bins - 1)), float(bins))
    count = fixed_size(numbers.shape[0])
    added = c.full((bins + 1,), 0, "float32").apply(
        *("put_along", place.astype("int32"), c.full((count,), 1, "float32")), axis=0, add=True
    )
    return added.apply("slice", axis=0, start=0, stop=bins, step=1).astype(c.dtype)


def _kth(c: Call, x: Value, k: int, dim: int = -1, keepdim: bool = False) -> tuple[Value, Value]:
    if x.ndim == 0:
        raise Refused("a scalar has no order")
    axis = c.axis(dim, x.ndim)
    extent = fixed_size(x.shape[axis])
    is_low = 2 * k <= extent
    kept = k if is_low else extent - k + 1
    given = {"k": kept, "axis": axis, "largest": not is_low}

    def last(name: str, shape: tuple[int, ...]) -> Value:
        found = x.apply(name, **given)
        return found.apply("slice", axis=axis, start=kept - 1, stop=kept, step=1).reshape(*shape)

    return last("topk", c.shapes[0]), last("topk_places", c.shapes[1])


def _bags(
    c: Call,
    weight: Value,
    indices: Value,
    offsets: Value,
    by_frequency: bool = False,
    mode: int = _SUM,
    sparse: bool = False,
    each: Value | None = None,
    has_last: bool = False,
    padding: int = -1,
) -> tuple[Value | None, ...]:
    """Return what bags of rows give; a bag's rows follow one another."""
    count, bags = fixed_size(indices.shape[0]), fixed_size(c.shape[0])
    if not count or not bags:
        raise Refused("bags without rows have no kernel")
    begins = offsets.astype("int32").apply("slice", axis=0, start=0, stop=bags, step=1)
    positions = c.apply("arange", count=count, dtype="int32").astype("float32")
    bag = begins.astype("float32").apply("search", positions, right=True) - 1
    rows = weight.apply("take", indices.astype("int32"), axis=0).astype("float32")
    if each is not None:
        rows = rows * each.astype("float32").reshape(-1, 1)
    counts: Value | None = None
    if padding >= 0:
        is_row = indices.astype("int32").apply("not_equal", padding)
        neutral = -math.inf if mode == _MAX else 0.0
        rows = is_row.reshape(-1, 1).apply("where", rows, neutral)
        ones = is_row.astype("float32")
    else:
        ones = c.full((count,), 1, "float32")
    if mode != _SUM:
        zeros = c.full((bags,), 0, "float32")
        counts = zeros.apply("put_along", bag, ones, axis=0, add=True).reshape(-1, 1)
    shape, place = fixed_shape(c.shape), bag.reshape(-1, 1)
    if mode == _MAX:
        least = c.full(shape, -math.inf, "float32")
        found = least.apply("join_along", place, rows, axis=0, join="max")
        assert counts is not None
        found = counts.apply("greater", 0.0).apply("where", found, 0.0)
    else:
        found = c.full(shape, 0, "float32").apply("put_along", place, rows, axis=0, add=True)
        if counts is not None:
            found = found / counts.apply("maximum", 1.0)
    # What the backward reads is not computed where there is none.
    return found.astype(c.dtype), None, None, None


def _in_bags(*args: Any, **_: Any) -> Sequence[tuple[Any, int]]:
    weight, indices, offsets = args[:3]
    return [(indices, int(weight.shape[0])), (offsets, int(indices.shape[0]) + 1)]


LOOKUPS: Mapping[str, Callable[..., Sequence[tuple[Any, int]]]] = {
    "aten._embedding_bag_forward_only.default": _in_bags,
}
"""As those of the operators that look up."""

ROWS: Mapping[str, Row] = {
    "aten.searchsorted.Tensor": _searchsorted,
    "aten.bucketize.Tensor": _bucketize,
    "aten.histc.default": _histogram,
    "aten.kthvalue.default": _kth,
    "aten._embedding_bag_forward_only.default": _bags,
}
