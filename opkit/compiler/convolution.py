"""The operator table's row of convolution: patches gathered into columns, then one product."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from opkit.errors import UsageError

from .dimensions import Dimension, same, shape_text
from .table import Operator, Settings, as_promoted

if TYPE_CHECKING:
    from .builder import Value
    from .dimensions import Shape
    from .graph import Tensor

__all__ = ["CONVOLUTION"]

_PAIRS = ("stride", "padding", "dilation")


def _pair(settings: Settings, name: str) -> tuple[int, int]:
    value = settings[name]
    pair = tuple(value) if isinstance(value, tuple | list) else (value, value)
    least = 0 if name == "padding" else 1
    if len(pair) != 2 or not all(isinstance(each, int) and each >= least for each in pair):
        raise UsageError(f"{name} is {value}, expected one or two numbers, {least} or more")
    return pair


def _extents(shape: Shape, kernel: Shape, settings: Settings) -> tuple[Dimension, Dimension]:
    found = []
    pairs = [_pair(settings, name) for name in _PAIRS]
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


def _shape(tensors: Sequence[Tensor], settings: Settings) -> Shape:
    x, w = (tensor.shape for tensor in tensors)
    groups = settings["groups"]
    if len(x) != 4 or len(w) != 4:
        raise UsageError(
            f"{shape_text(x)} and {shape_text(w)}: expected images of batch, channels, rows and"
            " columns, and kernels of outputs, channels, rows and columns"
        )
    if not all(isinstance(e, int) for e in (x[1], *w)) or not isinstance(groups, int):
        raise UsageError("channels and kernels have fixed sizes")
    if groups < 1 or not same(w[1] * groups, x[1]) or int(w[0]) % groups:
        raise UsageError(
            f"{w[0]} kernels of {w[1]} channels do not fit {x[1]} channels in {groups} groups"
        )
    return (x[0], w[0], *_extents(x, w, settings))


def _expand(x: Value, weight: Value, **settings: Any) -> Value:
    groups = int(settings["groups"])
    outputs, channels, high, wide = (int(e) for e in weight.shape)
    rows, columns = _extents(x.shape, weight.shape, settings)
    (down, across), padding, dilation = (_pair(settings, name) for name in _PAIRS)
    if any(padding):
        widths = ((0, 0), (0, 0), (padding[0], padding[0]), (padding[1], padding[1]))
        x = x.apply("pad", widths=widths, value=0.0)
    patches = []
    for i in range(high):
        part = _strided(x, 2, i * dilation[0], int(rows), down)
        for j in range(wide):
            patch = _strided(part, 3, j * dilation[1], int(columns), across)
            patches.append(patch.reshape(-1, groups * channels, 1, rows * columns))
    taps = high * wide
    joined = patches[0] if taps == 1 else x.builder.apply("concat", *patches, axis=2)
    # For each group a matrix of all taps of its channels, down, and all places, across.
    places = joined.reshape(-1, groups, channels * taps, rows * columns)
    kernels = weight.reshape(1, groups, outputs // groups, channels * taps)
    return (kernels @ places).reshape(-1, outputs, rows, columns)


def _strided(x: Value, axis: int, start: int, count: int, step: int) -> Value:
    stop = start + (count - 1) * step + 1
    return x.apply("slice", axis=axis, start=start, stop=stop, step=step)


def _reference(x: Any, weight: Any, **settings: Any) -> Any:
    (down, across), padding, dilation = (_pair(settings, name) for name in _PAIRS)
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
    return result.reshape(x.shape[0], outputs, int(rows), int(columns))


CONVOLUTION = Operator(
    *("conv2d", 2, "convolution", _shape, as_promoted, _reference),
    expand=_expand,
    parameters={"stride": 1, "padding": 0, "dilation": 1, "groups": 1},
)
"""Images of batch, channels, rows, columns by kernels of outputs, channels of a group, rows,
columns."""
