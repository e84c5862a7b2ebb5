"""Rows of convolution and its gradients: patches, and products of them with the kernels."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from opkit.compiler import AtenCall as Call
from opkit.compiler import Refused, Value, fixed_shape, fixed_size, patches, unpatched
from opkit.dtypes import find_dtype

__all__ = ["ROWS"]

Row = Callable[..., Any]
Settings = Mapping[str, Any]
_MOST_BYTES = 1 << 30
"""What the patches of one convolution may take."""


def _settings(
    stride: Sequence[int], padding: Sequence[int], dilation: Sequence[int], groups: int
) -> Settings:
    """Return a convolution's settings; along one axis it is one of images a row high."""
    if len(stride) not in (1, 2):
        raise Refused(f"a convolution along {len(stride)} axes has no kernel")

    def pair(values: Sequence[int], low: int) -> tuple[int, int]:
        given = tuple(int(each) for each in values)
        return (low, given[0]) if len(given) == 1 else (given[0], given[1])

    return {
        "stride": pair(stride, 1),
        "padding": pair(padding, 0),
        "dilation": pair(dilation, 1),
        "groups": int(groups),
    }


def _flat(x: Value) -> Value:
    """Return images, or lines as images a row high."""
    return x.reshape(*x.shape[:2], 1, x.shape[2]) if x.ndim == 3 else x


def _check_size(images: Sequence[Any], kernel: Value, places: Sequence[Any], dtype: str) -> None:
    """Raise Refused where patches are too large.

    Args:
        images: how many, and of how many channels.
        places: rows and columns of what the kernels are applied at.
    """
    row = find_dtype(dtype)
    assert row is not None
    total = row.size_bytes * _count((*images, *kernel.shape[2:], *places))
    if total > _MOST_BYTES:
        raise Refused(
            f"the patches of the convolution take {total >> 20} MiB, kernels make"
            f" {_MOST_BYTES >> 20} at most"
        )


def _for_images(
    grad: Value, weight: Value, image: Sequence[Any], settings: Settings, dtype: str
) -> Value:
    """Return the gradient of the images, which is also what a transposed convolution gives."""
    groups = int(settings["groups"])
    outputs, taps = fixed_size(weight.shape[0]), _count(weight.shape[1:])
    places = _count(grad.shape[2:])
    if groups == 1:
        kernels, of_places = weight.reshape(outputs, taps).T, grad.reshape(-1, outputs, places)
    else:
        kernels = weight.reshape(1, groups, outputs // groups, taps).transpose(0, 1, 3, 2)
        of_places = grad.reshape(-1, groups, outputs // groups, places)
        if fixed_size(grad.shape[0]) > 1:
            kernels = kernels.apply("broadcast_to", shape=(grad.shape[0], *kernels.shape[1:]))
    # Taps are added up in full.
    cells = kernels.apply("matmul", of_places, dtype="float32")
    return unpatched(cells, tuple(image), weight.shape, settings).astype(dtype)


def _for_kernels(x: Value, grad: Value, weight: Value, settings: Settings) -> Value:
    """Return the gradient of the kernels, one image after another added up in full."""
    groups = int(settings["groups"])
    outputs, places = fixed_size(weight.shape[0]), _count(grad.shape[2:])
    cells, is_turned = patches(x, weight.shape, settings)
    if groups == 1:
        of_places = grad.reshape(-1, outputs, places)
    else:
        of_places = grad.reshape(-1, groups, outputs // groups, places)
    each = of_places.apply("matmul", cells, transpose_b=not is_turned, dtype="float32")
    if fixed_size(x.shape[0]) > 1:
        each = each.sum(axis=0)
    return each.reshape(*weight.shape).astype(weight.dtype)


def _count(shape: Sequence[Any]) -> int:
    return math.prod(fixed_shape(shape))


def _convolution(
    c: Call,
    x: Value,
    weight: Value,
    bias: Value | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
) -> Value:
    settings = _settings(stride, padding, dilation, groups)
    x, kernel = _flat(x), _flat(weight)
    shape = (*c.shape[:2], 1, c.shape[2]) if len(c.shape) == 3 else c.shape
    if transposed:
        _check_size(c.shape[:2], kernel, x.shape[2:], x.dtype)
        value = _for_images(x, kernel, shape, settings, "float32")
        if bias is not None:
            value = value + bias.astype("float32").reshape(1, -1, 1, 1)
        return value.astype(c.dtype).reshape(*c.shape)
    _check_size(x.shape[:2], kernel, shape[2:], x.dtype)
    operands = (x, kernel) if bias is None else (x, kernel, bias)
    return c.apply("conv2d", *operands, **settings).reshape(*c.shape)


def _convolution_backward(
    c: Call,
    grad: Value,
    x: Value,
    weight: Value,
    bias_sizes: Sequence[int] | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
    wanted: Sequence[bool],
) -> tuple[Value | None, ...]:
    settings = _settings(stride, padding, dilation, groups)
    g, images, kernel = _flat(grad), _flat(x), _flat(weight)
    # The images of which a transposed convolution takes patches are its results.
    whole, small = (g, images) if transposed else (images, g)
    _check_size(whole.shape[:2], kernel, small.shape[2:], x.dtype)
    found: list[Value | None] = [None, None, None]
    if wanted[0]:
        if transposed:
            value = c.apply("conv2d", g, kernel, **settings)
        else:
            value = _for_images(g, kernel, images.shape, settings, x.dtype)
        found[0] = value.reshape(*x.shape)
    if wanted[1]:
        found[1] = _for_kernels(whole, small, kernel, settings).reshape(*weight.shape)
    if wanted[2]:
        found[2] = g.astype("float32").sum(axis=(0, 2, 3)).astype(g.dtype)
    return tuple(found)


def _folded(
    c: Call,
    x: Value,
    output_size: Sequence[int],
    kernel_size: Sequence[int],
    dilation: Sequence[int],
    padding: Sequence[int],
    stride: Sequence[int],
) -> Value:
    """Return images of columns of patches, what lies in several of them added up."""
    settings = _settings(stride, padding, dilation, 1)
    channels = fixed_size(c.shape[-3])
    image = (x.shape[0] if x.ndim == 3 else 1, channels, *output_size)
    cells = x.astype("float32").reshape(image[0], -1, x.shape[-1])
    folded = unpatched(cells, image, (1, channels, *kernel_size), settings)
    return folded.astype(c.dtype).reshape(*c.shape)


ROWS: Mapping[str, Row] = {
    "aten.col2im.default": _folded,
    "aten.convolution.default": _convolution,
    "aten.convolution_backward.default": _convolution_backward,
}
