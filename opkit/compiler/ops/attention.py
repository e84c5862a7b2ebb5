"""The operator table's row of attention."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from opkit.errors import UsageError

from ..ir import (
    GraphError,
    Operator,
    Settings,
    Shape,
    Tensor,
    Value,
    as_first,
    broadcast_shapes,
    same,
    shape_text,
)
from .scans import count_up

__all__ = ["ATTENTION", "heads_shared"]


def _apart(shape: Shape, is_turned: bool) -> Shape:
    """Return a shape with heads before rows, from one with rows before heads or the other way."""
    if not is_turned:
        return shape
    if len(shape) < 3:
        raise UsageError(f"{shape_text(shape)} has no heads, so that nothing is turned")
    return (*shape[:-3], shape[-2], shape[-3], shape[-1])


def heads_shared(q: Sequence[Any], k: Sequence[Any]) -> int:
    """Return how many heads that follow one another share keys, where keys have fewer heads than
    queries, but several; else 1.

    Args:
        q: the batches of queries, heads last.
        k: those of keys, or of values.
    """
    if not q or not k or not isinstance(q[-1], int) or not isinstance(k[-1], int):
        return 1
    heads, own = q[-1], k[-1]
    return heads // own if 1 < own < heads and heads % own == 0 else 1


def _spread(q: Shape, k: Shape) -> Shape:
    """Return the batches of keys with as many heads as queries have."""
    return k if heads_shared(q, k) == 1 else (*k[:-1], q[-1])


def _shape(tensors: Sequence[Tensor], settings: Settings) -> Shape:
    if len(tensors) not in (3, 4):
        raise UsageError(
            f"there are {len(tensors)} tensors, expected q, k, v, and a mask where there is one"
        )
    turned, ahead = settings.text("turned"), settings["ahead"]
    if not isinstance(ahead, int) or ahead < 0:
        raise UsageError(f"ahead is {ahead}, expected a whole number from 0")
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
    if heads_shared(q[:-2], k[:-2]) > 1 or heads_shared(q[:-2], v[:-2]) > 1:
        is_alike = len(q) == len(k) and all(map(same, q[:-3], k[:-3]))
        if not is_alike or len(k) != len(v) or not all(map(same, k[:-2], v[:-2])):
            raise UsageError(
                f"k {shape_text(k)} and v {shape_text(v)} have fewer heads than q"
                f" {shape_text(q)}: then all other batches are the same"
            )
    outer = broadcast_shapes(q[:-2], *(_spread(q[:-2], each[:-2]) for each in (k, v)))
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


def _reference(*arrays: Any, scale: float | None, causal: bool, turned: str, ahead: int) -> Any:
    q, k, v = (
        np.swapaxes(array, -3, -2) if letter in turned else array
        for array, letter in zip(arrays[:3], "qkv", strict=True)
    )
    k, v = (
        np.repeat(each, heads_shared(q.shape[:-2], each.shape[:-2]), axis=-3)
        if each.ndim > 2
        else each
        for each in (k, v)
    )
    mask = arrays[3:]
    factor = q.shape[-1] ** -0.5 if scale is None else scale
    scores = q @ np.swapaxes(k, -1, -2) * factor
    if mask:
        scores = scores + mask[0]
    if causal:
        seen = np.tril(np.ones(scores.shape[-2:], bool), ahead)
        scores = np.where(seen, scores, -np.inf)
    with np.errstate(all="ignore"):
        largest = scores.max(axis=-1, keepdims=True)
        # A row that sees no key gives zeros.
        weights = np.exp(scores - np.where(np.isneginf(largest), 0.0, largest))
        sums = weights.sum(axis=-1, keepdims=True)
        result = weights / np.where(sums == 0, 1.0, sums) @ v
    return np.swapaxes(result, -3, -2) if "y" in turned else result


_HIDDEN = -1e30
"""The score of a key that a query does not see, as in the kernel."""


def _gradient(
    g: Value, *tensors: Value, scale: float | None, causal: bool, turned: str, ahead: int
) -> Sequence[Value | None]:
    """The weights are computed again; scores and what they give are float32, and products take
    operands of the inputs' type."""
    *inputs, _ = tensors
    q, k, v = (
        _turned(each) if letter in turned else each
        for each, letter in zip(inputs[:3], "qkv", strict=True)
    )
    g = _turned(g) if "y" in turned else g
    if any(heads_shared(q.shape[:-2], each.shape[:-2]) > 1 for each in (k, v)):
        raise GraphError(
            "the gradient of attention in which heads share keys",
            location=q.builder.location,
            help="repeat keys and values for all heads",
        )
    width = q.shape[-1]
    if scale is None and not isinstance(width, int):
        raise GraphError(
            "the gradient of attention over rows of a width that the launch says",
            location=q.builder.location,
            help="pass scale",
        )
    factor = float(width) ** -0.5 if scale is None else scale

    def dot(a: Value, b: Value, **settings: object) -> Value:
        return a.apply("matmul", b.astype(a.dtype), **settings)

    scores = dot(q, k, transpose_b=True, dtype="float32") * factor
    if inputs[3:]:
        scores = (scores + inputs[3].astype("float32")).apply("maximum", _HIDDEN)
    if causal:
        rows, keys = scores.shape[-2:]
        places = count_up(q, rows).reshape(rows, 1) + ahead
        is_seen = places.apply("greater_equal", count_up(q, keys))
        scores = is_seen.apply("where", scores, _HIDDEN)
    weights = scores.apply("softmax", axis=-1)
    for_weights = dot(g, v, transpose_b=True, dtype="float32")
    inner = (for_weights * weights).sum(axis=-1, keepdims=True)
    for_scores = weights * (for_weights - inner)
    scaled = (for_scores * factor).astype(q.dtype)
    for_v = dot(weights.astype(v.dtype), g, transpose_a=True)
    found = [dot(scaled, k), dot(scaled, q, transpose_a=True), for_v]
    found = [
        _turned(each) if letter in turned else each
        for each, letter in zip(found, "qkv", strict=True)
    ]
    return (*found, *[for_scores.astype(each.dtype) for each in inputs[3:]])


def _turned(value: Value) -> Value:
    """Return heads before rows, or the other way round."""
    axes = list(range(value.ndim))
    axes[-3], axes[-2] = axes[-2], axes[-3]
    return value.transpose(*axes)


ATTENTION = Operator(
    *("attention", None, "attention", _shape, as_first, _reference),
    gradient=_gradient,
    aten="scaled_dot_product_attention",
    parameters={"scale": None, "causal": False, "turned": "", "ahead": 0},
)
"""softmax(q kᵀ scale + mask) v; without a scale one over the root of q's width; `causal`: a query
sees the keys up to its own place, before which `ahead` keys lie that no query has a place among;
`turned`: which of q, k, v and the result y have rows before heads, `[..., row, head, column]`, by
their letters. Where keys have fewer heads than queries, several that follow one another share
them."""
