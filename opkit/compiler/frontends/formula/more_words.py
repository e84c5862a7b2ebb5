"""Functions of formulas that order, count and place elements, of the table's operators: those of
PyTorch and NumPy that have no row of their own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from opkit.errors import UsageError

from ...ir import Dimension, Value, is_floating, normal_axes
from ...ops import count_up, log_of_sums, scan

__all__ = ["KEEPING_WORDS", "MORE_WORDS"]

_WIDEST = 64
"""Elements of a window of `unfold`."""

Axes: TypeAlias = Any
"""An axis, or None: all elements as one line."""


def _line(x: Value, axis: Axes) -> tuple[Value, int]:
    """Return a tensor and the axis to work along; all of its elements where none is named."""
    if axis is None:
        return x.reshape(-1), 0
    return x, normal_axes(axis, x.ndim)[0]


def _kept(found: Value, x: Value, axis: Axes) -> Value:
    """Return what is left of an axis, or of all, with axes of length 1 in its place."""
    return found.reshape(*(1,) * x.ndim) if axis is None else found


def _at(x: Value, place: Value, axis: int) -> Value:
    """Return the elements at a place that is computed, of an axis, which stays."""
    return x.apply("take", place, axis=axis)


def _one(x: Value, place: Dimension, axis: int) -> Value:
    """Return the elements at one place of an axis, which stays."""
    found = x.apply("slice", axis=axis, start=place, stop=place + 1, step=1)
    return found.reshape(*x.shape[:axis], 1, *x.shape[axis + 1 :])


def _length(x: Value, extent: Dimension) -> Value:
    return x.builder.extent(extent).apply("cast", dtype="int32")


def _median(x: Value, axis: Axes = None, lower: bool = False) -> Value:
    """The middle of an axis in order: of two, PyTorch's is the lower one, NumPy's their mean."""
    line, at = _line(x, axis)
    _check_fractions(line, "median")
    count = line.shape[at]
    ordered = line.apply("sort", axis=at)
    below = _one(ordered, (count - 1) // 2, at)
    if lower:
        return _kept(below, x, axis)
    above = _one(ordered, count // 2, at)
    return _kept((below + above) * 0.5, x, axis)


def _median_places(x: Value, axis: Axes = None) -> Value:
    line, at = _line(x, axis)
    middle = (line.shape[at] - 1) // 2
    return _kept(_one(line.apply("argsort", axis=at), middle, at), x, axis)


def _check_fractions(x: Value, name: str) -> None:
    if not is_floating(x.dtype):
        raise UsageError(f"{name} is of fractions, and these are {x.dtype}", help="x.float()")


def _kthvalue(x: Value, k: int, axis: int = -1) -> Value:
    return _kth(x.apply("sort", axis=axis), k, axis)


def _kthvalue_places(x: Value, k: int, axis: int = -1) -> Value:
    return _kth(x.apply("argsort", axis=axis), k, axis)


def _kth(ordered: Value, k: int, axis: int) -> Value:
    at = normal_axes(axis, ordered.ndim)[0]
    if not isinstance(k, int) or k < 1:
        raise UsageError(f"the {k}th element, expected 1 or more")
    return ordered.apply("slice", axis=at, start=k - 1, stop=k, step=1)


def _quantile(x: Value, q: Any, axis: Axes = None) -> Value:
    """What a share `q` of an axis in order lies below, on the line between its neighbours."""
    line, at = _line(x, axis)
    _check_fractions(line, "quantile")
    if not isinstance(q, Value) and not (isinstance(q, int | float) and 0 <= q <= 1):
        raise UsageError(f"the share is {q}, expected one number from 0 to 1")
    last = (_length(line, line.shape[at]) - 1).astype("float32")
    # What is computed of sizes alone is no tensor.
    place = count_up(x, 1).astype("float32") + last * q
    below = place.apply("floor")
    ordered = line.apply("sort", axis=at)
    first = _at(ordered, below.astype("int32"), at)
    above = below.apply("add", 1.0).apply("minimum", last).astype("int32")
    share = (place - below).reshape(*(1,) * line.ndim)
    return _kept(first + (_at(ordered, above, at) - first) * share, x, axis)


def _ptp(x: Value, axis: Axes = None) -> Value:
    line, at = _line(x, axis)
    high, low = (line.apply(each, axis=at, keepdims=True) for each in ("max", "min"))
    return _kept(high - low, x, axis)


def _search(edges: Value, x: Value, *, is_right: bool) -> Value:
    """How many of some edges in order stay before each element: those below it, or up to it."""
    if edges.ndim == 1:
        lines, values = edges.reshape(*(1,) * x.ndim, -1), x.reshape(*x.shape, 1)
    else:
        lines = edges.reshape(*edges.shape[:-1], 1, edges.shape[-1])
        values = x.reshape(*x.shape, 1)
    # What is no number comes behind all edges.
    beyond = lines.apply("greater" if is_right else "greater_equal", values)
    before = beyond.apply("logical_not").apply("cast", dtype="int32")
    return before.sum(axis=-1)


def _searchsorted(
    sorted_sequence: Value, x: Value, right: bool = False, side: str = "left"
) -> Value:
    if side not in ("left", "right"):
        raise UsageError(f'side is "{side}", expected "left" or "right"')
    return _search(sorted_sequence, x, is_right=right or side == "right")


def _bucketize(x: Value, boundaries: Value, right: bool = False) -> Value:
    return _search(boundaries, x, is_right=right)


def _digitize(x: Value, bins: Value, right: bool = False) -> Value:
    return _search(bins, x, is_right=not right)


def _bincount(x: Value, weights: Value | None = None, minlength: int = 0) -> Value:
    """How often each number stands in a tensor, or the sum of what stands beside it."""
    if not isinstance(minlength, int) or minlength < 1:
        raise UsageError(
            "how long the result is depends on the largest value",
            help="give minlength=N: the result has N elements, and values are below N",
        )
    flat = x.reshape(-1)
    flat = flat if flat.dtype == "int32" else flat.astype("int32")
    dtype = "int32" if weights is None else "float32"
    added = _repeated(x, 1, dtype, flat.shape) if weights is None else weights.reshape(-1)
    zeros = _repeated(x, 0, dtype, (minlength,))
    return zeros.apply("put_along", flat, added, axis=0, add=True)


def _histc(x: Value, bins: int = 100, low: float = 0, high: float = 0) -> Value:
    if not isinstance(bins, int) or bins < 1 or not low < high:
        raise UsageError(
            f"{bins} bins from {low} to {high}",
            help="give bins, min and max as numbers: histc(x, bins=10, min=0, max=1)",
        )
    flat = x.reshape(-1, 1)
    place = ((flat - low) * (bins / (high - low))).apply("floor")
    place = place.apply("minimum", bins - 1.0)
    is_in = flat.apply("greater_equal", low).apply("logical_and", flat.apply("less_equal", high))
    bars = count_up(x, bins).astype("float32")
    is_here = place.apply("equal", bars.reshape(1, -1)).apply("logical_and", is_in)
    return is_here.apply("where", 1.0, 0.0).sum(axis=0)


def _cumulative(join: str, neutral: float) -> Callable[..., Value]:
    def function(x: Value, axis: int = -1) -> Value:
        at = normal_axes(axis, x.ndim)[0]
        _check_fractions(x, f"cum{join[:3]}")
        return scan(x, lambda a, b: a.apply(join, b), neutral, at)

    return function


def _logcumsumexp(x: Value, axis: int = -1) -> Value:
    return log_of_sums(x, normal_axes(axis, x.ndim)[0])


def _kron(x: Value, y: Value) -> Value:
    rank = max(x.ndim, y.ndim)
    sizes = [(*(1,) * (rank - each.ndim), *each.shape) for each in (x, y)]
    apart = [
        x.reshape(*(e for extent in sizes[0] for e in (extent, 1))),
        y.reshape(*(e for extent in sizes[1] for e in (1, extent))),
    ]
    return (apart[0] * apart[1]).reshape(*(a * b for a, b in zip(*sizes, strict=True)))


def _rot90(x: Value, k: int = 1, axes: tuple[int, int] = (0, 1)) -> Value:
    first, second = (normal_axes(axis, x.ndim)[0] for axis in axes)
    order = list(range(x.ndim))
    order[first], order[second] = order[second], order[first]

    def reversed_along(value: Value, at: int) -> Value:
        last = _length(value, value.shape[at]) - 1
        return value.apply("take", last - count_up(value, value.shape[at]), axis=at)

    turns = k % 4
    if turns == 2:
        return reversed_along(reversed_along(x, first), second)
    if turns == 1:
        return reversed_along(x, second).transpose(*order)
    return reversed_along(x.transpose(*order), second) if turns == 3 else x


def _unfold(x: Value, axis: int, size: int, step: int) -> Value:
    """Windows of an axis, each a line of the last axis."""
    at = normal_axes(axis, x.ndim)[0]
    if not isinstance(size, int) or not 1 <= size <= _WIDEST:
        raise UsageError(f"windows of {size} elements, expected 1 to {_WIDEST}")
    count = (x.shape[at] - size) // step + 1
    # The first of all windows, the second of all, ...: each is a slice, and so is its gradient.
    firsts = [
        x.apply("slice", axis=at, start=place, stop=place + (count - 1) * step + 1, step=step)
        for place in range(size)
    ]
    shape = (*x.shape[:at], count, *x.shape[at + 1 :], 1)
    if size == 1:
        return firsts[0].reshape(*shape)
    return x.builder.apply("concat", *(each.reshape(*shape) for each in firsts), axis=x.ndim)


def _along(index: Value, rank: int, axis: int) -> Value:
    """Return indices of a list, each of which is for all that stands across the axis."""
    if index.ndim != 1:
        raise UsageError(f"the indices have {index.ndim} axes, expected one")
    return index.reshape(*(-1 if at == axis else 1 for at in range(rank)))


def _index_add(
    x: Value, axis: int, index: Value, source: Value, alpha: float = 1, *, add: bool = True
) -> Value:
    at = normal_axes(axis, x.ndim)[0]
    source = source if alpha == 1 else source * alpha
    return x.apply("put_along", _along(index, x.ndim, at), source, axis=at, add=add)


def _index_copy(x: Value, axis: int, index: Value, source: Value) -> Value:
    return _index_add(x, axis, index, source, add=False)


def _index_fill(x: Value, axis: int, index: Value, value: float) -> Value:
    at = normal_axes(axis, x.ndim)[0]
    shape = (*x.shape[:at], index.shape[0], *x.shape[at + 1 :])
    return _index_copy(x, axis, index, _repeated(x, value, x.dtype, shape))


def _repeated(x: Value, number: Any, dtype: str, shape: Any) -> Value:
    return x.builder.constant(number, dtype).apply("broadcast_to", shape=shape)


def _scatter(x: Value, axis: int, index: Value, src: Any, *, add: bool = False) -> Value:
    if not isinstance(src, Value):
        src = _repeated(x, src, x.dtype, index.shape)
    return x.apply("put_along", index, src, axis=normal_axes(axis, x.ndim)[0], add=add)


def _scatter_add(x: Value, axis: int, index: Value, src: Any) -> Value:
    return _scatter(x, axis, index, src, add=True)


KEEPING_WORDS: Mapping[str, Callable[..., Value]] = {
    "kthvalue": _kthvalue,
    "kthvalue_places": _kthvalue_places,
    "median": _median,
    "median_places": _median_places,
    "ptp": _ptp,
    "quantile": _quantile,
}
"""Reductions: the axis that they take away stays until the end, and the result has it with
`keepdims=True`."""

MORE_WORDS: Mapping[str, Callable[..., Value]] = {
    **KEEPING_WORDS,
    "bincount": _bincount,
    "bucketize": _bucketize,
    "cummax": _cumulative("maximum", float("-inf")),
    "cummin": _cumulative("minimum", float("inf")),
    "digitize": _digitize,
    "histc": _histc,
    "index_add": _index_add,
    "index_copy": _index_copy,
    "index_fill": _index_fill,
    "kron": _kron,
    "logcumsumexp": _logcumsumexp,
    "rot90": _rot90,
    "scatter": _scatter,
    "scatter_add": _scatter_add,
    "searchsorted": _searchsorted,
    "unfold": _unfold,
}
