"""Models that were trained with fake-quantisation: their scales, where calibration would guess."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import fx

from opkit.graph.export import Exported
from opkit.graph.translation import is_view

__all__ = ["Levels", "left_of", "levels_of", "read_past", "weight_node_of"]

_PER_TENSOR = torch.ops.aten.fake_quantize_per_tensor_affine_cachemask.default
_PER_CHANNEL = torch.ops.aten.fake_quantize_per_channel_affine_cachemask.default
_COUNT = 256
"""Levels that 8 bits tell apart."""
_CONVOLUTION = torch.ops.aten.convolution.default


def left_of(product: fx.Node) -> fx.Node:
    """Return what a product multiplies its weights by: of a convolution its images."""
    left = product.args[0 if product.target is _CONVOLUTION else -2]
    assert isinstance(left, fx.Node)
    return left


def weight_node_of(product: fx.Node) -> fx.Node:
    """Return the weights of a product or a convolution."""
    right = product.args[1 if product.target is _CONVOLUTION else -1]
    assert isinstance(right, fx.Node)
    return right


@dataclass(frozen=True)
class Levels:
    """What the whole numbers of a fake-quantised tensor stand for: `(number - zero) * scale`."""

    scale: Any
    """float64: of the whole tensor, or one for each of its first axis' channels."""
    zero: int
    low: int
    high: int

    @property
    def shift(self) -> int:
        """What brings the numbers into the range of int8."""
        return -128 - self.low if self.low < -128 or self.high > 127 else 0


def levels_of(model: Exported, node: fx.Node) -> Levels | None:
    """Return the levels of a tensor that is fake-quantised in int8 or uint8, seen through views;
    None for another. Of channels those of weights, all around 0."""
    source = _source(node)
    if source is None:
        return None
    if source.target is _PER_TENSOR:
        _, scale, zero, low, high = source.args
        found = Levels(np.float64(scale), int(zero), int(low), int(high))  # type: ignore[arg-type]
    else:
        _, scales, zeros, axis, low, high = source.args
        assert isinstance(scales, fx.Node) and isinstance(zeros, fx.Node)
        if axis != 0 or any(each not in model.constants for each in (scales, zeros)):
            return None
        if bool(model.constants[zeros].any()):
            return None
        wide = model.constants[scales].double().numpy()
        found = Levels(wide, 0, int(low), int(high))  # type: ignore[arg-type]
    return found if found.high - found.low < _COUNT else None


def read_past(model: Exported, products: Sequence[fx.Node]) -> dict[fx.Node, Levels]:
    """Let products whose left side is fake-quantised read what that rounds, and return the levels
    to which they are to round it themselves. Fake-quantised tensors that others read too stay."""
    found: dict[fx.Node, Levels] = {}
    for product in products:
        levels = levels_of(model, left_of(product))
        if levels is not None and levels.scale.ndim == 0:
            found[product] = levels
    for product in list(found):
        source = _source(left_of(product))
        if source is None:  # another product of the same tensor was here before
            continue
        results = [user for user in source.users if user.args[1] == 0]
        if all(_is_read_by(result, found) for result in results):
            given = source.args[0]
            assert isinstance(given, fx.Node)
            for result in results:
                result.replace_all_uses_with(given)
    return found


def _is_read_by(node: fx.Node, products: dict[fx.Node, Levels]) -> bool:
    """Whether only these products read a node, as their left side, seen through views."""
    return bool(node.users) and all(
        (user in products and left_of(user) is node and weight_node_of(user) is not node)
        or (user not in products and is_view(user) and _is_read_by(user, products))
        for user in node.users
    )


def _source(node: fx.Node) -> fx.Node | None:
    """Return the fake-quantisation whose levels a tensor has, seen through views."""
    while node.op == "call_function" and node.target not in (_PER_TENSOR, _PER_CHANNEL):
        if not is_view(node) or len(node.all_input_nodes) != 1:
            return None
        (node,) = node.all_input_nodes
    return node if node.op == "call_function" else None
