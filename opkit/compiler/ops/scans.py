"""Rows of the operators that run along an axis: counting, products, and sums on the way."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from opkit.errors import UsageError

from ..ir import (
    REQUIRED,
    Dimension,
    GraphError,
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

__all__ = ["ROWS", "count_up"]

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


def _fixed_extent(x: Value, axis: int) -> int:
    extent = x.shape[axis]
    if not isinstance(extent, int):
        raise GraphError(
            f"along {extent} elements: their number must be known",
            location=x.builder.location,
            help="give the axis a fixed size",
        )
    return extent


def _cumsum(x: Value, axis: int) -> Value:
    (axis,) = normal_axes(axis, x.ndim)
    extent = x.shape[axis]
    if not is_floating(x.dtype):
        return _by_doubling(x.astype("int32"), "add", 0, axis)
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


def _moved(x: Value, axis: int, distance: int, neutral: int) -> Value:
    """Return elements that many places further along an axis, or before for one below 0; where
    none comes from stands what is neutral."""
    extent = _fixed_extent(x, axis)
    start, stop = max(0, -distance), extent - max(0, distance)
    ends = (max(0, distance), max(0, -distance))
    widths = tuple(ends if at == axis else (0, 0) for at in range(x.ndim))
    kept = x.apply("slice", axis=axis, start=start, stop=stop, step=1)
    return kept.apply("pad", widths=widths, value=neutral)


def _by_doubling(x: Value, operator: str, neutral: int, axis: int, direction: int = 1) -> Value:
    """Return what comes together up to each element: it takes in the one 1, 2, 4, ... before it,
    or behind it for the direction -1."""
    distance = 1
    while distance < _fixed_extent(x, axis):
        x = x.apply(operator, _moved(x, axis, direction * distance, neutral))
        distance *= 2
    return x


def _cumprod(x: Value, axis: int) -> Value:
    (axis,) = normal_axes(axis, x.ndim)
    wide = x.astype("float32" if is_floating(x.dtype) else "int32")
    return _by_doubling(wide, "mul", 1, axis).astype(x.dtype if is_floating(x.dtype) else "int32")


def _prod(x: Value, axis: Any, keepdims: bool) -> Value:
    """Return the product along axes: halves onto each other, until one element is left."""
    axes = normal_axes(axis, x.ndim)
    wide = x.astype("float32") if is_floating(x.dtype) else x
    wide = wide.astype("int32") if x.dtype == "bool" else wide
    for at in axes:
        extent = _fixed_extent(x, at)
        width = 1 << (extent - 1).bit_length()
        if width != extent:
            ends = tuple((0, width - extent) if each == at else (0, 0) for each in range(x.ndim))
            wide = wide.apply("pad", widths=ends, value=1)
        while width > 1:
            width //= 2
            halves = [
                wide.apply("slice", axis=at, start=begin, stop=begin + width, step=1)
                for begin in (0, width)
            ]
            wide = halves[0] * halves[1]
    narrow = wide.astype(x.dtype) if is_floating(x.dtype) else wide
    if keepdims:
        return narrow
    return narrow.reshape(*(e for at, e in enumerate(x.shape) if at not in axes))


def _grad_prod(
    grad: Value, x: Value, y: Value, axis: Any, keepdims: bool
) -> Sequence[Value | None]:
    """Return each element's gradient: the product of all others, so that a 0 divides nothing."""
    axes = normal_axes(axis, x.ndim)
    order = [*(at for at in range(x.ndim) if at not in axes), *axes]
    turned = x.transpose(*order)
    lines = turned.reshape(*turned.shape[: x.ndim - len(axes)], -1)
    last = lines.ndim - 1
    before, behind = (
        _moved(_by_doubling(lines, "mul", 1, last, way), last, way, 1) for way in (1, -1)
    )
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
