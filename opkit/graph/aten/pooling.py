"""Rows of pooling and its gradients: the windows' columns are folded first, then their rows."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from opkit.compiler import AtenCall as Call
from opkit.compiler import Refused, Value, fixed_shape, fixed_size, placed, spaced

__all__ = ["LOOKUPS", "ROWS"]

Row = Callable[..., Any]


@dataclass(frozen=True)
class _Windows:
    """Windows along one axis."""

    axis: int
    taps: int
    step: int
    padding: int
    dilation: int
    extent: int
    """Elements that they lie over."""
    count: int
    """How many there are."""

    @property
    def reach(self) -> int:
        """Elements that the first to the last window span, from the first of the padding on."""
        return (self.count - 1) * self.step + (self.taps - 1) * self.dilation + 1

    @property
    def widths(self) -> tuple[int, int]:
        """Elements of padding before and after that windows reach."""
        return self.padding, max(0, self.reach - self.padding - self.extent)

    def framed(self, x: Value, value: float) -> Value:
        """Return a tensor with the padding that windows reach."""
        widths = tuple(self.widths if at == self.axis else (0, 0) for at in range(x.ndim))
        return x.apply("pad", widths=widths, value=value) if any(self.widths) else x

    def parts(self, x: Value) -> list[Value]:
        """Return what each tap of all windows reads, of a framed tensor."""
        found = []
        for tap in range(self.taps):
            start = tap * self.dilation
            stop = start + (self.count - 1) * self.step + 1
            if (start, stop, self.step) == (0, x.shape[self.axis], 1):
                found.append(x)
                continue
            found.append(x.apply("slice", axis=self.axis, start=start, stop=stop, step=self.step))
        return found

    def counted(self, with_padding: bool) -> Any:
        """Return how many elements each window has."""
        starts = np.arange(self.count) * self.step - self.padding
        low, high = (
            (-self.padding, self.extent + self.padding) if with_padding else (0, self.extent)
        )
        stops = np.minimum(starts + self.taps, high)
        return stops - np.maximum(starts, low)


def _windows(
    axes: int,
    image: Sequence[Any],
    result: Sequence[Any],
    kernel: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int] | int,
    dilation: Sequence[int] | int = 1,
) -> list[_Windows]:
    """Return the windows along each of the last axes."""
    given = (kernel, stride or kernel, padding, dilation)
    taps, steps, paddings, dilations = (_each(value, axes) for value in given)
    extents, counts = fixed_shape(image[-axes:]), fixed_shape(result[-axes:])
    numbers = zip(taps, steps, paddings, dilations, extents, counts, strict=True)
    return [_Windows(len(image) - axes + at, *own) for at, own in enumerate(numbers)]


def _each(value: Sequence[int] | int, axes: int) -> tuple[int, ...]:
    given = (value,) if isinstance(value, int) else tuple(int(each) for each in value)
    return given * axes if len(given) == 1 else given


def _maximum(axes: int) -> Row:
    """Return the row of the largest of each window along some axes."""

    def row(
        c: Call,
        x: Value,
        kernel: Sequence[int],
        stride: Sequence[int] = (),
        padding: Sequence[int] | int = 0,
        dilation: Sequence[int] | int = 1,
        ceil_mode: bool = False,
    ) -> tuple[Value, Value]:
        """The largest of each window, and where in its image that lies: the first of equal ones."""
        if "float" not in c.dtypes[0]:
            raise Refused("the largest of whole numbers' windows has no kernel")
        windows = _windows(axes, x.shape, c.shapes[0], kernel, stride, padding, dilation)
        best, place, inner = x, None, 1
        for each in reversed(windows):
            best, tap = _largest(each.parts(each.framed(best, -math.inf)))
            own = _place(c, each, tap) * inner
            # The place along inner axes is that of the row which has the largest.
            place = own if place is None else own + _chosen(each.parts(each.framed(place, 0)), tap)
            inner *= each.extent
        assert place is not None
        return best, place

    return row


def _chosen(parts: Sequence[Value], which: Value) -> Value:
    """Return of several tensors the elements of that one which another tensor says."""
    found = parts[0]
    for tap, part in enumerate(parts[1:], 1):
        found = which.apply("equal", float(tap)).apply("where", part, found)
    return found


def _largest(parts: Sequence[Value]) -> tuple[Value, Value]:
    """Return the largest of several, and which of them it is, as a fraction; what is no number
    counts as the largest."""
    best = parts[0]
    which = best.builder.constant(0.0).apply("broadcast_to", shape=best.shape)
    for tap, part in enumerate(parts[1:], 1):
        more = part.apply("greater", best).apply("logical_or", part.apply("not_equal", part))
        best = more.apply("where", part, best)
        which = more.apply("where", float(tap), which)
    return best, which


def _place(c: Call, windows: _Windows, tap: Value) -> Value:
    """Return where a tap of each window lies along its axis, without the padding."""
    starts = np.arange(windows.count, dtype=np.int32) * windows.step - windows.padding
    shape = [1] * tap.ndim
    shape[windows.axis] = windows.count
    first = c.constant(starts.astype(np.int32).reshape(shape))
    place = tap.astype("int32") * windows.dilation + first
    if windows.padding == 0:
        return place
    # Only where a window has nothing but -inf is a place in the padding the first of equal ones.
    return place.apply("maximum", 0)


def _maximum_backward(
    c: Call,
    grad: Value,
    x: Value,
    kernel: Sequence[int],
    stride: Sequence[int],
    padding: Any,
    dilation: Any,
    ceil_mode: bool,
    places: Value,
) -> Value:
    high, wide = fixed_shape(x.shape[-2:])
    count = math.prod(fixed_shape(grad.shape[-2:]))
    given = grad.reshape(-1, count).astype("float32")
    zeros = c.full((fixed_size(given.shape[0]), high * wide), 0, "float32")
    put = zeros.apply("put_along", places.reshape(-1, count), given, axis=1, add=True)
    return put.astype(c.dtype).reshape(*c.shape)


def _average(axes: int) -> Row:
    """Return the row of the mean of each window along some axes."""

    def row(
        c: Call,
        x: Value,
        kernel: Sequence[int],
        stride: Sequence[int] = (),
        padding: Sequence[int] | int = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> Value:
        windows = _windows(axes, x.shape, c.shape, kernel, stride, padding)
        value = x.astype("float32")
        for each in reversed(windows):
            parts = each.parts(each.framed(value, 0.0))
            value = parts[0]
            for part in parts[1:]:
                value = value + part
        factor = _factor(c, windows, x.ndim, count_include_pad, divisor_override)
        return (value * factor).astype(c.dtype)

    return row


def _factor(
    c: Call, windows: Sequence[_Windows], rank: int, with_padding: bool, divisor: int | None
) -> Value | float:
    """Return what sums of windows are multiplied by."""
    if divisor is not None:
        return 1.0 / divisor
    counts = functools.reduce(np.multiply.outer, (each.counted(with_padding) for each in windows))
    if counts.min() == counts.max():
        return 1.0 / int(counts.min())
    factors = (1.0 / counts).astype(np.float32)
    return c.constant(factors.reshape(*(1,) * (rank - factors.ndim), *factors.shape))


def _average_backward(
    c: Call,
    grad: Value,
    x: Value,
    kernel: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int] | int,
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: int | None,
) -> Value:
    windows = _windows(2, x.shape, grad.shape, kernel, stride, padding)
    factor = _factor(c, windows, x.ndim, count_include_pad, divisor_override)
    value = grad.astype("float32") * factor
    for each in windows:
        value = _spread(value, each)
    return value.astype(c.dtype)


def _spread(x: Value, windows: _Windows) -> Value:
    """Return the sum along an axis of the windows that each element is in."""
    axis = windows.axis
    apart = spaced(x, axis, windows.step)
    full = max(windows.reach, windows.padding + windows.extent)
    total = placed(apart, axis, 0, full)
    for tap in range(1, windows.taps):
        total = total + placed(apart, axis, tap * windows.dilation, full)
    if full == windows.extent:
        return total
    stop = windows.padding + windows.extent
    return total.apply("slice", axis=axis, start=windows.padding, stop=stop, step=1)


def _cells(image: Sequence[Any], result: Sequence[Any]) -> tuple[int, int]:
    """Return the size of equal cells that an image falls into."""
    found = []
    for extent, count in zip(fixed_shape(image[-2:]), fixed_shape(result[-2:]), strict=True):
        if extent % count:
            raise Refused(f"{extent} rows or columns do not fall into {count} equal parts")
        found.append(extent // count)
    return found[0], found[1]


def _adaptive(c: Call, x: Value, size: Sequence[int]) -> Value:
    """Return the mean of each cell, one axis after the other."""
    wide, counts = x.astype("float32"), fixed_shape(c.shape)
    if all(count == 1 for count in size):
        return (
            wide.reshape(*x.shape[: -len(size)], -1).mean(axis=-1).astype(c.dtype).reshape(*counts)
        )
    for axis in range(x.ndim - len(size), x.ndim):
        wide = _means_along(c, wide, axis, counts[axis])
    return wide.astype(c.dtype)


def _means_along(c: Call, x: Value, axis: int, count: int) -> Value:
    """Return the means of the cells that an axis falls into, which may share elements."""
    extent = fixed_size(x.shape[axis])
    lead, rest = x.shape[:axis], x.shape[axis + 1 :]
    if extent == count:
        return x
    if extent % count == 0:
        return x.reshape(*lead, count, extent // count, *rest).mean(axis=axis + 1)
    cells = np.arange(count)
    begin, end = cells * extent // count, -(-(cells + 1) * extent // count)
    # Row n of what is picked has the n-th element of each cell.
    steps = np.arange(int((end - begin).max()))[:, None]
    at = np.minimum(begin + steps, extent - 1).astype(np.int32)
    shape = (len(steps), count, *(1,) * len(rest))
    is_inside = c.constant((begin + steps < end).astype(np.float32).reshape(shape))
    picked = x.apply("take", c.constant(at.reshape(-1)), axis=axis)
    picked = picked.reshape(*lead, len(steps), count, *rest)
    inside = is_inside.apply("not_equal", 0.0).apply("where", picked, 0.0)
    share = c.constant((1 / (end - begin)).astype(np.float32).reshape(shape[1:]))
    return inside.sum(axis=axis) * share


def _adaptive_backward(c: Call, grad: Value, x: Value) -> Value:
    high, wide = _cells(x.shape, grad.shape)
    down, across = grad.shape[-2:]
    each = (grad * (1.0 / (high * wide))).reshape(-1, down, 1, across, 1)
    shape = (*each.shape[:2], high, across, wide)
    return each.apply("broadcast_to", shape=shape).reshape(*c.shape)


def _places(grad: Any, x: Any, *rest: Any, **_: Any) -> Sequence[tuple[Any, int]]:
    return [(rest[-1], int(x.shape[-2]) * int(x.shape[-1]))]


LOOKUPS: Mapping[str, Callable[..., Sequence[tuple[Any, int]]]] = {
    "aten.max_pool2d_with_indices_backward.default": _places,
}
"""Operators that look up, as of `places`."""

ROWS: Mapping[str, Row] = {
    "aten.max_pool2d_with_indices.default": _maximum(2),
    "aten.max_pool3d_with_indices.default": _maximum(3),
    "aten.max_pool2d_with_indices_backward.default": _maximum_backward,
    "aten.avg_pool2d.default": _average(2),
    "aten.avg_pool3d.default": _average(3),
    "aten.avg_pool2d_backward.default": _average_backward,
    "aten._adaptive_avg_pool2d.default": _adaptive,
    "aten._adaptive_avg_pool3d.default": _adaptive,
    "aten._adaptive_avg_pool2d_backward.default": _adaptive_backward,
}
