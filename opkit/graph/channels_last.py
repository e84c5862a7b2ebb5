"""Convolutions of model files with channels last: products whose two sides lie along K.

Weights are turned once, when a model is built. What stands between two convolutions is element-wise
for the most part, so that the transposes around each cancel.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import fx

from opkit.compiler import Value, windows
from opkit.graph.aten import Call
from opkit.graph.export import Exported
from opkit.graph.translation import Replacement, operator_name

__all__ = ["channels_last", "convolved", "fold_norms", "kernels_of", "taps_of"]

_CONVOLUTION = "aten.convolution.default"
_NORM = "aten._native_batch_norm_legit_no_training.default"
Product = Callable[[Call, Value], Value]
"""From a matrix of patches, row by row, to what their kernels make of them."""


def kernels_of(model: Exported, node: fx.Node) -> torch.Tensor | None:
    """Return the weights of a convolution along two axes in one group, a row of taps with their
    channels for each output; None for another node."""
    if operator_name(node) != _CONVOLUTION:
        return None
    weight, bias, is_turned, groups = (node.args[at] for at in (1, 2, 6, 8))
    if not isinstance(weight, fx.Node) or is_turned or groups != 1:
        return None
    if isinstance(bias, fx.Node) and model.constant(bias) is None:
        return None
    values = model.constant(weight)
    if values is None or values.dim() != 4 or not values.is_floating_point():
        return None
    return values.permute(0, 2, 3, 1).reshape(values.shape[0], -1).contiguous()


def channels_last(model: Exported) -> dict[fx.Node, Replacement]:
    """Return what stands for the convolutions of a model in its own precision."""
    found: dict[fx.Node, Replacement] = {}
    for node in model.work():
        weights = kernels_of(model, node)
        if weights is not None:
            found[node] = convolved(model, node, _fractions(weights))
    return found


def _fractions(weights: torch.Tensor) -> Product:
    def product(c: Call, cells: Value) -> Value:
        if weights.dtype == torch.bfloat16:
            held = c.constant(weights.view(torch.int16).numpy().view(np.uint16), "bfloat16")
        else:
            held = c.constant(weights.numpy())
        # Sums are rounded once the bias is added.
        return cells.apply("matmul", held, transpose_b=True, dtype="float32")

    return product


def convolved(
    model: Exported,
    node: fx.Node,
    product: Product,
    prepared: Callable[[Value], Value] = lambda x: x,
    *,
    has_bias: bool = False,
    frame: int = 0,
) -> Replacement:
    """Return the row of a convolution.

    Args:
        product: multiplies its patches.
        prepared: is applied to every element before.
        has_bias: the product adds it.
        frame: what lies around the images, as they are after `prepared`.
    """
    shape = _shape_of(model, node)

    def row(c: Call, x: Value, _: Value, bias: Value | None, *rest: Any) -> Value:
        steps, padding, dilation = (tuple(map(int, each)) for each in rest[:3])
        settings = {"stride": steps, "padding": padding, "dilation": dilation}
        cells = windows(prepared(x).transpose(0, 2, 3, 1), shape[2:], settings, frame)
        images, rows, columns, across = cells.shape
        result = product(c, cells.reshape(images * rows * columns, across))
        if bias is not None and not has_bias:
            result = result + bias.astype(result.dtype)
        return result.astype(x.dtype).reshape(images, rows, columns, shape[0]).transpose(0, 3, 1, 2)

    return row


def taps_of(
    model: Exported, node: fx.Node, images: torch.Tensor
) -> tuple[list[torch.Tensor], tuple[int, int]]:
    """Return what each tap of a convolution reads of its images, in the order of `kernels_of`, and
    how many rows and columns of places there are."""
    steps, padding, dilation = (tuple(map(int, node.args[at])) for at in (3, 4, 5))  # type: ignore
    kernel = _shape_of(model, node)[2:]
    wide = torch.nn.functional.pad(images, (padding[1], padding[1], padding[0], padding[0]))
    reach = [dilation[at] * (kernel[at] - 1) for at in (0, 1)]
    rows, columns = ((wide.shape[2 + at] - reach[at] - 1) // steps[at] + 1 for at in (0, 1))
    taps = []
    for row, column in np.ndindex(*kernel):
        part = wide[:, :, row * dilation[0] :: steps[0], column * dilation[1] :: steps[1]]
        taps.append(part[:, :, :rows, :columns])
    return taps, (rows, columns)


def _shape_of(model: Exported, node: fx.Node) -> tuple[int, ...]:
    weight = node.args[1]
    assert isinstance(weight, fx.Node)
    values = model.constant(weight)
    assert values is not None
    return tuple(values.shape)


def fold_norms(model: Exported) -> None:
    """Take norms of batches, whose mean and variance training has left, into the weights of the
    convolutions that alone they follow."""
    for node in list(model.graph.nodes):
        if operator_name(node) != _NORM:
            continue
        before, *given, _, epsilon = node.args
        if not isinstance(before, fx.Node) or kernels_of(model, before) is None:
            continue
        # Weights that training rounds keep their levels, and the norm its kernel.
        if any(isinstance(a, fx.Node) and a not in model.constants for a in before.args[1:3]):
            continue
        results = list(node.users)
        if len(before.users) != 1 or any(user.args[1] != 0 for user in results):
            continue
        if any(each is not None and each not in model.constants for each in given):
            continue
        scale, shift, mean, variance = (
            None if each is None else model.constants[each].double() for each in given
        )
        assert mean is not None and variance is not None
        factor = torch.rsqrt(variance + float(epsilon))
        factor = factor if scale is None else factor * scale
        weight: Any = before.args[1]
        bias: Any = before.args[2]
        old = model.constants[weight]
        offset = -mean if bias is None else model.constants[bias].double() - mean
        added = offset * factor if shift is None else offset * factor + shift
        wide = old.double() * factor.reshape(-1, 1, 1, 1)
        fresh = [
            _constant(model, before, f"{before.name}_{what}", value.to(old.dtype))
            for what, value in (("weight", wide), ("bias", added))
        ]
        before.args = (before.args[0], *fresh, *before.args[3:])
        for result in results:
            result.replace_all_uses_with(before)


def _constant(model: Exported, before: fx.Node, name: str, value: torch.Tensor) -> fx.Node:
    with model.graph.inserting_before(before):
        node = model.graph.placeholder(name)
    node.meta["val"] = value
    model.constants[node] = value.contiguous()
    return node
