"""The operator table's row of convolution: patches gathered into columns, then one product."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from opkit.errors import UsageError

from ..ir import (
    HALVES,
    Dimension,
    Operator,
    Shape,
    Tensor,
    Value,
    as_promoted,
    fixed_shape,
    fixed_size,
    is_floating,
    pieces_of,
    product,
    same,
    shape_text,
)

__all__ = ["CONVOLUTION", "patches", "placed", "spaced", "unpatched", "unwindowed", "windows"]

_PAIRS = ("stride", "padding", "dilation")
_MOST_BOXES = 32
"""That one kernel copies: each is 168 bytes of what a launch brings."""


def _extents(
    shape: Shape, kernel: Shape, settings: Mapping[str, Any]
) -> tuple[Dimension, Dimension]:
    found = []
    pairs = [settings[name] for name in _PAIRS]
    for axis in range(2):
        stride, padding, dilation = (pair[axis] for pair in pairs)
        extent, taps = shape[2 + axis], kernel[2 + axis]
        if not isinstance(extent, int) or not isinstance(taps, int):
            raise UsageError(f"the image has {extent} rows or columns, expected a fixed size")
        reach = dilation * (taps - 1) + 1
        if reach > extent + 2 * padding:
            raise UsageError(f"a kernel that reaches over {reach} elements does not fit {extent}")
        found.append((extent + 2 * padding - reach) // stride + 1)
    return found[0], found[1]


def _shape(tensors: Sequence[Tensor], settings: Mapping[str, Any]) -> Shape:
    if len(tensors) not in (2, 3):
        raise UsageError(f"expected images, kernels and perhaps a bias, not {len(tensors)} tensors")
    x, w, *bias = (tensor.shape for tensor in tensors)
    groups = settings["groups"]
    if len(x) != 4 or len(w) != 4:
        raise UsageError(
            f"{shape_text(x)} and {shape_text(w)}: expected images of batch, channels, rows and"
            " columns, and kernels of outputs, channels, rows and columns"
        )
    if not all(isinstance(e, int) for e in (x[1], *w)):
        raise UsageError("channels and kernels have fixed sizes")
    if not same(w[1] * groups, x[1]) or int(w[0]) % groups:
        raise UsageError(
            f"{w[0]} kernels of {w[1]} channels do not fit {x[1]} channels in {groups} groups"
        )
    if bias and (len(bias[0]) != 1 or not same(bias[0][0], w[0])):
        raise UsageError(f"a bias of {shape_text(bias[0])} does not fit {w[0]} kernels")
    return (x[0], w[0], *_extents(x, w, settings))


def _expand(x: Value, weight: Value, bias: Value | None = None, **settings: Any) -> Value:
    groups = int(settings["groups"])
    dtype = x.dtype
    # A bias is added to the sums before they are rounded.
    sums = "float32" if bias is not None and dtype in HALVES else None
    outputs = fixed_size(weight.shape[0])
    rows, columns = _extents(x.shape, weight.shape, settings)
    cells, is_turned = patches(x, weight.shape, settings)
    across = fixed_size(product(weight.shape[1:]))
    if 1 < groups == outputs == x.shape[1] and is_floating(x.dtype):
        taps = cells.reshape(-1, outputs, across, fixed_size(rows) * fixed_size(columns))
        places = _by_channels(taps, weight.reshape(1, outputs, across, 1))
    elif groups == 1:
        kernels = weight.reshape(outputs, across)
        places = kernels.apply("matmul", cells, transpose_b=is_turned, dtype=sums)
    else:
        kernels = weight.reshape(1, groups, outputs // groups, across)
        if not same(x.shape[0], 1):
            shape = (x.shape[0], *kernels.shape[1:])
            kernels = kernels.apply("broadcast_to", shape=shape)
        places = kernels.apply("matmul", cells, dtype=sums)
    if bias is not None:
        added = bias.astype(places.dtype)
        places = places + added.reshape(*((1, groups, -1, 1) if places.ndim == 4 else (-1, 1)))
    places = places.astype(dtype) if is_floating(dtype) else places
    return places.reshape(-1, outputs, rows, columns)


def _by_channels(cells: Value, kernels: Value) -> Value:
    """Return what one kernel for each channel makes of its patches: sums in float32 that the vector
    unit adds up, as a product of one row would leave nearly all of the cube idle.

    Args:
        cells: images, channels, taps, places.
        kernels: of the same axes.
    """
    return (cells.astype("float32") * kernels.astype("float32")).sum(axis=2)


def patches(x: Value, kernel: Shape, settings: Mapping[str, Any]) -> tuple[Value, bool]:
    """Return what each result of a convolution reads: for each image (and group, where there are
    several) a matrix of all taps of the channels, down, and all places, across; or, as the second
    says, the other way round, where patches do not overlap and so lie in rows.

    Raises:
        UsageError: the sizes do not fit.
    """
    groups = int(settings["groups"])
    channels, high, wide = fixed_shape(kernel[1:])
    steps, padding, dilation = (settings[name] for name in _PAIRS)
    rows, columns = _extents(x.shape, kernel, settings)
    if groups == 1 and steps == (high, wide) and dilation == (1, 1) and high * wide > 1:
        x = _framed(x, padding)
        x = _cut(_cut(x, 2, int(rows) * high), 3, int(columns) * wide)
        cells = x.reshape(-1, channels, rows, high, columns, wide).transpose(0, 2, 4, 1, 3, 5)
        return cells.reshape(-1, int(rows) * int(columns), channels * high * wide), True
    has_phases = steps[1] > 1 and wide > 1
    x = _by_phases(x, padding, steps[1]) if has_phases else _framed(x, padding)
    # First along the columns, then along the rows: fewer and longer parts than tap by tap.
    for axis, taps, count in ((3, wide, columns), (2, high, rows)):
        at = axis - 2
        starts, step = [tap * dilation[at] for tap in range(taps)], steps[at]
        if axis == 3 and has_phases:
            extent = fixed_size(x.shape[3]) // step
            starts = [start % step * extent + start // step for start in starts]
            step = 1
        parts = [_strided(x, x.ndim - 2 + at, start, int(count), step) for start in starts]
        parts = [each.reshape(-1, groups * channels, 1, *each.shape[2:]) for each in parts]
        x = parts[0] if taps == 1 else x.builder.apply("concat", *parts, axis=2)
    shape = (channels * high * wide, int(rows) * int(columns))
    return (x.reshape(-1, *shape) if groups == 1 else x.reshape(-1, groups, *shape)), False


def windows(x: Value, kernel: Shape, settings: Mapping[str, Any], frame: int = 0) -> Value:
    """Return what each result of a convolution reads, for images with channels last: images, rows,
    columns, and the taps row by row, each with its channels.

    Args:
        kernel: its rows and columns.
        frame: what lies around an image.

    Raises:
        UsageError: the sizes do not fit.
    """
    steps, padding, dilation = (settings[name] for name in _PAIRS)
    images, high, wide, channels = x.shape
    counts = _extents((images, channels, high, wide), (1, channels, *kernel), settings)
    rows, columns = fixed_shape(counts)
    down, across = fixed_shape(kernel)
    if (down, across) == steps == (1, 1) and not any(padding):
        return x
    given = {"kernel": (down, across), "stride": steps, "dilation": dilation}
    depth = down * across * fixed_size(channels)
    target = (fixed_size(images), rows, columns, depth)
    if _is_one_kernel(x, target, {**given, "padding": padding}):
        return x.apply("windows", **given, padding=padding, value=frame)
    if any(padding):
        around = ((0, 0), (padding[0], padding[0]), (padding[1], padding[1]), (0, 0))
        x = x.apply("pad", widths=around, value=frame)
    if _is_one_kernel(x, target, {**given, "padding": (0, 0)}):
        return x.apply("windows", **given)
    if steps == (down, across) and dilation == (1, 1):
        x = _cut(_cut(x, 1, rows * down), 2, columns * across)
        cells = x.reshape(-1, rows, down, columns, across, channels).transpose(0, 1, 3, 2, 4, 5)
        return cells.reshape(-1, rows, columns, depth)
    # First along the columns, then along the rows: fewer and longer parts than tap by tap.
    for axis in (2, 1):
        at = axis - 1
        parts = [
            _strided(x, axis, tap * dilation[at], fixed_size(counts[at]), steps[at])
            for tap in range(fixed_size(kernel[at]))
        ]
        x = parts[0] if len(parts) == 1 else x.builder.apply("concat", *parts, axis=3)
    return x


def _is_one_kernel(x: Value, target: tuple[int, ...], settings: Mapping[str, Any]) -> bool:
    """Whether windows of an image are few enough boxes for one kernel to copy."""
    shape = fixed_shape(x.shape)
    return len(pieces_of("windows", settings, [shape], target)) <= _MOST_BOXES


def unpatched(cells: Value, image: Shape, kernel: Shape, settings: Mapping[str, Any]) -> Value:
    """Return the images of `patches` from it, with what several places read added up: its gradient.

    Args:
        cells: for each image, and group where there are several, all taps of the channels, down,
            and all places, across.
        image: images, channels, rows, columns.
    """
    high, wide = fixed_shape(kernel[2:])
    rows, columns = fixed_shape(_extents(image, kernel, settings))
    channels = fixed_size(image[1])
    x = cells.reshape(-1, channels, high, wide, rows, columns)
    for at, taps in ((0, high), (1, wide)):
        parts = []
        for tap in range(taps):
            part = _at(x, 2, tap)
            parts.append(_back(part, part.ndim - 2 + at, tap, at, image[2 + at], settings))
        x = _added(parts)
    return _unframed(x, 2, image[2:], settings["padding"])


def unwindowed(cells: Value, image: Shape, settings: Mapping[str, Any]) -> Value:
    """Return the images of the operator `windows` from what it gives, with what several places read
    added up: its gradient.

    Args:
        cells: images, rows, columns, and the taps row by row, each with its channels.
        image: images, rows, columns, channels.
    """
    images, *extents, channels = image
    _, rows, columns, _ = cells.shape
    high, wide = settings["kernel"]
    if cells.dtype in ("float16", "bfloat16"):
        # A product before gives sums that nothing has rounded, and taps may cancel each other.
        wider = unwindowed(cells.astype("float32"), image, settings)
        return wider.astype(cells.dtype)
    x = cells.reshape(images, rows, columns, high, wide, channels)
    # First along the columns, whose taps are the inner ones.
    for at, axis, taps in ((1, 4, wide), (0, 3, high)):
        parts = [
            _back(_at(x, axis, tap), 1 + at, tap, at, extents[at], settings) for tap in range(taps)
        ]
        x = _added(parts)
    return _unframed(x, 1, extents, settings["padding"])


def _at(x: Value, axis: int, place: int) -> Value:
    """Return what lies at one place of an axis, which is gone."""
    if not same(x.shape[axis], 1):
        x = x.apply("slice", axis=axis, start=place, stop=place + 1, step=1)
    return x.reshape(*x.shape[:axis], *x.shape[axis + 1 :])


def _back(
    part: Value, axis: int, tap: int, at: int, extent: Dimension, settings: Mapping[str, Any]
) -> Value:
    """Return what one tap reads, back where it lies along an axis of the framed image."""
    steps, padding, dilation = (settings[name][at] for name in _PAIRS)
    apart = spaced(part, axis, steps)
    return placed(apart, axis, tap * dilation, fixed_size(extent) + 2 * padding)


def _added(parts: Sequence[Value]) -> Value:
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total


def _unframed(x: Value, first: int, extents: Sequence[Dimension], padding: Sequence[int]) -> Value:
    """Return an image without its frame; its rows are the axis `first`."""
    for at, width in enumerate(padding):
        if width:
            stop = width + fixed_size(extents[at])
            x = x.apply("slice", axis=first + at, start=width, stop=stop, step=1)
    return x


def spaced(x: Value, axis: int, step: int) -> Value:
    """Return elements `step` apart along an axis, with zeros between them."""
    shape, count = x.shape, fixed_size(x.shape[axis])
    if step > 1 and count > 1:
        x = x.reshape(*shape[:axis], count, 1, *shape[axis + 1 :])
        widths = tuple((0, step - 1 if at == axis + 1 else 0) for at in range(x.ndim))
        x = x.apply("pad", widths=widths, value=0.0)
        x = x.reshape(*shape[:axis], count * step, *shape[axis + 1 :])
        x = _cut(x, axis, (count - 1) * step + 1)
    return x


def placed(x: Value, axis: int, start: int, extent: int) -> Value:
    """Return `extent` elements along an axis: a tensor's from `start` on, zeros around them."""
    count = fixed_size(x.shape[axis])
    if start == 0 and count == extent:
        return x
    around = (start, extent - start - count)
    widths = tuple(around if at == axis else (0, 0) for at in range(x.ndim))
    return x.apply("pad", widths=widths, value=0.0 if "float" in x.dtype else 0)


def _framed(x: Value, padding: tuple[int, int], beyond: int = 0) -> Value:
    """Return images with a frame of zeros, and `beyond` columns more at the end of rows."""
    if not any(padding) and not beyond:
        return x
    widths = ((0, 0), (0, 0), (padding[0], padding[0]), (padding[1], padding[1] + beyond))
    return x.apply("pad", widths=widths, value=0.0)


def _by_phases(x: Value, padding: tuple[int, int], step: int) -> Value:
    """Return framed images whose rows have every `step`-th column first, then those next to them,
    and so on: taps of a convolution with that step read neighbours, where elements that lie apart
    would be copied one by one."""
    x = _framed(x, padding, -(fixed_size(x.shape[3]) + 2 * padding[1]) % step)
    *around, columns = x.shape
    rows = x.reshape(*around, fixed_size(columns) // step, step)
    return rows.transpose(0, 1, 2, 4, 3).reshape(*around, columns)


def _cut(x: Value, axis: int, stop: int) -> Value:
    if same(x.shape[axis], stop):
        return x
    return x.apply("slice", axis=axis, start=0, stop=stop, step=1)


def _strided(x: Value, axis: int, start: int, count: int, step: int) -> Value:
    stop = start + (count - 1) * step + 1
    if start == 0 and step == 1 and same(x.shape[axis], stop):
        return x
    return x.apply("slice", axis=axis, start=start, stop=stop, step=step)


def _reference(x: Any, weight: Any, bias: Any = None, **settings: Any) -> Any:
    (down, across), padding, dilation = (settings[name] for name in _PAIRS)
    groups = settings["groups"]
    rows, columns = _extents(x.shape, weight.shape, settings)
    x = np.pad(x, ((0, 0), (0, 0), (padding[0],) * 2, (padding[1],) * 2))
    outputs, channels, high, wide = weight.shape
    result = np.zeros((x.shape[0], groups, outputs // groups, int(rows), int(columns)))
    kernels = weight.reshape(groups, outputs // groups, channels, high, wide)
    for i in range(high):
        for j in range(wide):
            top, left = i * dilation[0], j * dilation[1]
            part = x[:, :, top::down, left::across][:, :, : int(rows), : int(columns)]
            part = part.reshape(x.shape[0], groups, channels, int(rows), int(columns))
            result += np.einsum("ngcrs,goc->ngors", part, kernels[..., i, j])
    result = result.reshape(x.shape[0], outputs, int(rows), int(columns))
    return result if bias is None else result + bias.reshape(-1, 1, 1)


CONVOLUTION = Operator(
    *("conv2d", None, "convolution", _shape, as_promoted, _reference),
    expand=_expand,
    parameters={"stride": (1, 1), "padding": (0, 0), "dilation": (1, 1), "groups": 1},
)
"""Images of batch, channels, rows, columns by kernels of outputs, channels of a group, rows,
columns; perhaps a bias, a number for each output."""
