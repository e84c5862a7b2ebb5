"""The operator table's row of attention."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from opkit.errors import UsageError

from .dimensions import Shape, broadcast_shapes, same, shape_text
from .table import Operator, Settings, as_first

if TYPE_CHECKING:
    from .graph import Tensor

__all__ = ["ATTENTION"]


def _apart(shape: Shape, is_turned: bool) -> Shape:
    """Return a shape with heads before rows, from one with rows before heads or the other way."""
    if not is_turned:
        return shape
    if len(shape) < 3:
        raise UsageError(f"{shape_text(shape)} has no heads, so that nothing is turned")
    return (*shape[:-3], shape[-2], shape[-3], shape[-1])


def _shape(tensors: Sequence[Tensor], settings: Settings) -> Shape:
    if len(tensors) not in (3, 4):
        raise UsageError(
            f"there are {len(tensors)} tensors, expected q, k, v, and a mask where there is one"
        )
    turned = str(settings["turned"])
    q, k, v = (
        _apart(tensor.shape, letter in turned)
        for tensor, letter in zip(tensors[:3], "qkv", strict=True)
    )
    if min(len(q), len(k), len(v)) < 2:
        raise UsageError("q, k and v have two axes or more")
    if not same(q[-1], k[-1]) or not same(k[-2], v[-2]):
        raise UsageError(
            f"q {shape_text(q)}, k {shape_text(k)} and v {shape_text(v)} do not belong together:"
            " q and k have equal last axes, k and v equal last but one"
        )
    outer = broadcast_shapes(q[:-2], k[:-2], v[:-2])
    if len(outer) != len(q) - 2 or not all(map(same, outer, q[:-2])):
        raise UsageError(f"k and v have more batches than q {shape_text(q)}")
    if len(tensors) == 4:
        scores = (*q[:-1], k[-2])
        wide = broadcast_shapes(tensors[3].shape, scores)
        if len(wide) != len(scores) or not all(map(same, wide, scores)):
            raise UsageError(
                f"the mask {shape_text(tensors[3].shape)} does not broadcast to the scores"
                f" {shape_text(scores)}"
            )
    return _apart((*q[:-1], v[-1]), "y" in turned)


def _reference(*arrays: Any, scale: float | None, causal: bool, turned: str) -> Any:
    q, k, v = (
        np.swapaxes(array, -3, -2) if letter in turned else array
        for array, letter in zip(arrays[:3], "qkv", strict=True)
    )
    mask = arrays[3:]
    factor = q.shape[-1] ** -0.5 if scale is None else scale
    scores = q @ np.swapaxes(k, -1, -2) * factor
    if mask:
        scores = scores + mask[0]
    if causal:
        seen = np.tril(np.ones(scores.shape[-2:], bool))
        scores = np.where(seen, scores, -np.inf)
    with np.errstate(all="ignore"):
        weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
        result = weights / weights.sum(axis=-1, keepdims=True) @ v
    return np.swapaxes(result, -3, -2) if "y" in turned else result


ATTENTION = Operator(
    *("attention", None, "attention", _shape, as_first, _reference),
    aten="scaled_dot_product_attention",
    parameters={"scale": None, "causal": False, "turned": ""},
)
"""softmax(q kᵀ scale + mask) v; without a scale one over the root of q's width; `causal`: a query
sees the keys up to its own place; `turned`: which of q, k, v and the result y have rows before
heads, `[..., row, head, column]`, by their letters."""
