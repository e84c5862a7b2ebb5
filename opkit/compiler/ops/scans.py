"""Rows of the operators that run along an axis: counting, products, and sums on the way."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from opkit.errors import UsageError

from ..ir import (
    REQUIRED,
    Dimension,
    Operator,
    Settings,
    Shape,
    Tensor,
    Value,
    as_sum,
    is_floating,
    normal_axes,
    reduced,
)

__all__ = ["ROWS", "Joined", "count_up", "log_of_sums", "moved", "scan"]

_COUNTED = ("int16", "int32", "float16", "float32")
"""Data types of CreateVecIndex."""
_BLOCK = 128
"""Elements that one product with a triangle of ones adds up."""
_LEVELS = 3
"""How often sums are taken of blocks where their number is known at launch only."""


def count_up(x: Value, count: Any, dtype: str = "int32") -> Value:
    """Return 0, 1, 2, ... as a tensor of the program that a value belongs to."""
    return x.builder.apply("arange", count=count, dtype=dtype)


def _counted(_: Sequence[Tensor], settings: Settings) -> Shape:
    count = settings["count"]
    if isinstance(count, int) and count < 1:
        raise UsageError(f"{count} elements, expected 1 or more")
    return (count,)


def _count_dtype(_: Sequence[Tensor], settings: Settings) -> str:
    dtype = settings.text("dtype")
    if dtype not in _COUNTED:
        raise UsageError(f"{dtype} is not counted in", help=f"there are {', '.join(_COUNTED)}")
    return dtype


def _first_shape(tensors: Sequence[Tensor], settings: Settings) -> Shape:
    settings.axes(len(tensors[0].shape))
    return tensors[0].shape


def _cumsum(x: Value, axis: int) -> Value:
    (axis,) = normal_axes(axis, x.ndim)
    extent = x.shape[axis]
    if not is_floating(x.dtype):
        return scan(x.astype("int32"), _add, 0, axis)
    order = [*(at for at in range(x.ndim) if at != axis), axis]
    rows = x.astype("float32").transpose(*order)
    summed = _last_axis(rows.reshape(-1, extent), extent).reshape(*rows.shape)
    return summed.transpose(*sorted(range(x.ndim), key=order.__getitem__)).astype(x.dtype)


def _last_axis(x: Value, extent: Dimension, levels: int = _LEVELS) -> Value:
    """Return the sums along the rows of a matrix: of blocks by products with a triangle, of the
    blocks' totals by the same again. Where their number is known at launch only, totals of totals
    are so few that one block holds them."""
    if isinstance(extent, int) and extent <= _BLOCK:
        return x @ _triangle(x, extent)
    if not isinstance(extent, int) and levels == 1:
        whole = x.apply("pad", widths=((0, 0), (0, _BLOCK - extent)), value=0.0)
        return (whole @ _triangle(x, _BLOCK))[:, :extent]
    blocks = (extent + _BLOCK - 1) // _BLOCK
    padded = x.apply("pad", widths=((0, 0), (0, blocks * _BLOCK - extent)), value=0.0)
    within = padded.reshape(-1, _BLOCK) @ _triangle(x, _BLOCK)
    totals = within[:, _BLOCK - 1].reshape(-1, blocks)
    before = _last_axis(totals, blocks, levels - 1) - totals
    whole = within.reshape(-1, blocks, _BLOCK) + before.reshape(-1, blocks, 1)
    return whole.reshape(-1, blocks * _BLOCK)[:, :extent]


def _triangle(x: Value, extent: int) -> Value:
    places = count_up(x, extent)
    is_before = places.reshape(extent, 1).apply("less_equal", places.reshape(1, extent))
    return is_before.astype("float32")


def moved(x: Value, axis: int, distance: int, neutral: float) -> Value:
    """Return elements that many places further along an axis, or before for one below 0; where
    none comes from stands what is neutral."""
    extent = x.shape[axis]
    ends = (max(0, distance), max(0, -distance))
    widths = tuple(ends if at == axis else (0, 0) for at in range(x.ndim))
    if not isinstance(extent, int):
        # An axis may be shorter than the distance: the whole is moved, and its end cut off.
        start = max(0, -distance)
        return x.apply("pad", widths=widths, value=neutral).apply(
            "slice", axis=axis, start=start, stop=start + extent, step=1
        )
    kept = x.apply("slice", axis=axis, start=ends[1], stop=extent - ends[0], step=1)
    return kept.apply("pad", widths=widths, value=neutral)


Joined: TypeAlias = Callable[[Value, Value], Value]


def scan(x: Value, join: Joined, neutral: float, axis: int, direction: int = 1) -> Value:
    """Return what comes together up to each element of an axis, or from the end for the direction
    -1: of fixed lengths, and of such that are known at launch only.

    Args:
        join: puts an element together with one before it; of three the order must not matter.
        neutral: what changes nothing where it is joined.
    """
    extent = x.shape[axis]
    if isinstance(extent, int):
        return _by_doubling(x, join, neutral, axis, direction)
    order = [*(at for at in range(x.ndim) if at != axis), axis]
    rows = x.transpose(*order)
    joined = _by_blocks(rows.reshape(-1, extent), join, neutral, direction)
    return joined.reshape(*rows.shape).transpose(*sorted(range(x.ndim), key=order.__getitem__))


def log_of_sums(x: Value, axis: int) -> Value:
    """Return in float32 the logarithm of the sum of the exponentials up to each element."""

    def join(a: Value, b: Value) -> Value:
        high, low = a.apply("maximum", b), a.apply("minimum", b)
        # Of two infinities of one sign the difference is no number.
        apart = high.apply("equal", low).apply("where", 0.0, low - high)
        return high + apart.apply("exp").apply("log1p")

    return scan(x.astype("float32"), join, float("-inf"), axis)


def _by_doubling(x: Value, join: Joined, neutral: float, axis: int, direction: int) -> Value:
    """Each element takes in the one 1, 2, 4, ... before it."""
    extent = x.shape[axis]
    assert isinstance(extent, int)
    distance = 1
    while distance < extent:
        x = join(x, moved(x, axis, direction * distance, neutral))
        distance *= 2
    return x


def _by_blocks(
    x: Value, join: Joined, neutral: float, direction: int, levels: int = _LEVELS
) -> Value:
    """Return the same of the rows of a matrix: within blocks, and of the blocks' ends again, which
    at the last level are so few that one block holds them."""
    extent = x.shape[1]
    is_last = levels == 1
    blocks = 1 if is_last else (extent + _BLOCK - 1) // _BLOCK
    rest = blocks * _BLOCK - extent
    padded = x.apply("pad", widths=((0, 0), (0, rest)), value=neutral)
    within = _by_doubling(padded.reshape(-1, _BLOCK), join, neutral, 1, direction)
    if not is_last:
        end = _BLOCK - 1 if direction > 0 else 0
        totals = within[:, end].reshape(-1, blocks)
        before = moved(
            _by_blocks(totals, join, neutral, direction, levels - 1), 1, direction, neutral
        )
        within = join(within.reshape(-1, blocks, _BLOCK), before.reshape(-1, blocks, 1))
    return within.reshape(-1, blocks * _BLOCK)[:, :extent]


def _add(a: Value, b: Value) -> Value:
    return a.apply("add", b)


def _mul(a: Value, b: Value) -> Value:
    return a.apply("mul", b)


def _cumprod(x: Value, axis: int) -> Value:
    (axis,) = normal_axes(axis, x.ndim)
    wide = x.astype("float32" if is_floating(x.dtype) else "int32")
    return scan(wide, _mul, 1, axis).astype(x.dtype if is_floating(x.dtype) else "int32")


def _prod(x: Value, axis: Any, keepdims: bool) -> Value:
    """Return the product along axes: halves onto each other, until one element is left."""
    axes = normal_axes(axis, x.ndim)
    wide = x.astype("float32") if is_floating(x.dtype) else x
    wide = wide.astype("int32") if x.dtype == "bool" else wide
    for at in axes:
        wide = _multiplied(wide, at)
    narrow = wide.astype(x.dtype) if is_floating(x.dtype) else wide
    if keepdims:
        return narrow
    return narrow.reshape(*(e for at, e in enumerate(x.shape) if at not in axes))


def _multiplied(x: Value, axis: int, levels: int = _LEVELS) -> Value:
    """Return the product along an axis, which stays with length 1."""
    extent = x.shape[axis]
    if isinstance(extent, int):
        width = 1 << (extent - 1).bit_length()
    elif levels > 1:
        # Of a length that is known at launch only: blocks first, then their products.
        blocks = (extent + _BLOCK - 1) // _BLOCK
        whole = _padded(x, axis, blocks * _BLOCK - extent)
        split = whole.reshape(*x.shape[:axis], blocks, _BLOCK, *x.shape[axis + 1 :])
        of_blocks = _multiplied(split, axis + 1)
        inner = of_blocks.reshape(*x.shape[:axis], blocks, *x.shape[axis + 1 :])
        return _multiplied(inner, axis, levels - 1)
    else:
        width = _BLOCK
    if not isinstance(extent, int) or width != extent:
        x = _padded(x, axis, width - extent)
    while width > 1:
        width //= 2
        halves = [
            x.apply("slice", axis=axis, start=begin, stop=begin + width, step=1)
            for begin in (0, width)
        ]
        x = halves[0] * halves[1]
    return x


def _padded(x: Value, axis: int, count: Dimension) -> Value:
    ends = tuple((0, count) if at == axis else (0, 0) for at in range(x.ndim))
    return x.apply("pad", widths=ends, value=1)


def _grad_prod(
    grad: Value, x: Value, y: Value, axis: Any, keepdims: bool
) -> Sequence[Value | None]:
    """Return each element's gradient: the product of all others, so that a 0 divides nothing."""
    axes = normal_axes(axis, x.ndim)
    order = [*(at for at in range(x.ndim) if at not in axes), *axes]
    turned = x.transpose(*order)
    lines = turned.reshape(*turned.shape[: x.ndim - len(axes)], -1)
    last = lines.ndim - 1
    before, behind = (moved(scan(lines, _mul, 1, last, way), last, way, 1) for way in (1, -1))
    others = (before * behind).reshape(*turned.shape)
    return (grad * others.transpose(*sorted(range(x.ndim), key=order.__getitem__)),)


def _grad_cumsum(grad: Value, x: Value, y: Value, axis: int) -> Sequence[Value | None]:
    # What an element adds to all behind it: the whole sum less the sums before.
    total = grad.sum(axis=axis, keepdims=True)
    return (total - grad.apply("cumsum", axis=axis) + grad,)


def _summed_shape(tensors: Sequence[Tensor], settings: Settings) -> Shape:
    axes = settings.axes(len(tensors[0].shape))
    return tuple(1 if at in axes else extent for at, extent in enumerate(tensors[0].shape))


def _np_whole_sum(x: Any, axis: Any) -> Any:
    return np.sum(x, axis=axis, keepdims=True, dtype=np.int64)


ROWS = (
    Operator(
        *("arange", 0, "source", _counted, _count_dtype),
        lambda count, dtype: np.arange(int(count)),
        parameters={"count": REQUIRED, "dtype": "int32"},
    ),
    Operator(
        *("cumsum", 1, "scan", _first_shape, as_sum),
        lambda x, axis: np.cumsum(x, axis=axis),
        expand=_cumsum,
        gradient=_grad_cumsum,
        aten="cumsum",
        parameters={"axis": -1},
    ),
    Operator(
        *("cumprod", 1, "scan", _first_shape, as_sum),
        lambda x, axis: np.cumprod(x, axis=axis),
        expand=_cumprod,
        aten="cumprod",
        parameters={"axis": -1},
    ),
    Operator(
        *("prod", 1, "reduction", reduced, as_sum),
        lambda x, axis, keepdims: np.prod(x, axis=axis, keepdims=keepdims),
        expand=_prod,
        gradient=_grad_prod,
        aten="prod",
        parameters={"axis": None, "keepdims": False},
    ),
    # What sums of whole numbers along axes of unknown size become; the axes stay, and are 1 long.
    Operator(
        *("whole_sum", 1, "line", _summed_shape, lambda *_: "int32", _np_whole_sum),
        parameters={"axis": REQUIRED},
    ),
)
