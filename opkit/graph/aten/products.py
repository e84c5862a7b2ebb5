"""Rows of the products of matrices, and of attention."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from opkit.compiler import AtenCall as Call
from opkit.compiler import Refused, Value, fixed_shape, fixed_size

__all__ = ["ROWS"]

Row = Callable[..., Any]
_FUSED_ATTENTION = ("float16", "bfloat16")
_WIDEST = 128
"""Elements of a head that the attention kernel takes."""


def _matmul(c: Call, a: Value, b: Value) -> Value:
    return a.apply("matmul", b)


def _addmm(c: Call, bias: Value, a: Value, b: Value, beta: float = 1, alpha: float = 1) -> Value:
    # The sums are not rounded before they are scaled and added to.
    product = a.apply("matmul", b, dtype="float32" if "float" in a.dtype else None)
    if alpha != 1:
        product = product * float(alpha)
    if beta != 0:
        bias = bias.astype(product.dtype)
        product = product + (bias if beta == 1 else bias * float(beta))
    return product.astype(c.dtype)


def _attention(
    c: Call,
    q: Value,
    k: Value,
    v: Value,
    mask: Value | None,
    is_causal: bool,
    scale: float | None,
) -> Value:
    """softmax(q kᵀ scale + mask) v; q, k and v have four axes and the same batches, k and v as many
    heads or fewer, which several of q's share."""
    width = q.shape[-1]
    assert isinstance(width, int)
    factor = 1 / math.sqrt(width) if scale is None else float(scale)
    fits = q.dtype in _FUSED_ATTENTION and width <= _WIDEST and v.shape[-1] == width
    shown = mask is not None and mask.dtype == "bool"
    if mask is not None:
        mask = _laid_out(mask, (*q.shape[:-1], k.shape[-2]))
    if fits and not shown and (mask is None or not is_causal) and factor > 0:
        operands = [q, k, v] if mask is None else [q, k, v, mask]
        return c.apply("attention", *operands, scale=factor, causal=is_causal)
    k, v = _for_all_heads(k, q), _for_all_heads(v, q)
    scores = q.apply("matmul", k, transpose_b=True) * factor
    if mask is not None and not shown:
        scores = scores + mask
    seen = mask if shown else None
    if is_causal:
        seen = c.constant(np.tril(np.ones(fixed_shape((q.shape[-2], k.shape[-2])), bool)))
    if seen is not None:
        scores = seen.apply("where", scores, -math.inf)
    weights = scores.apply("softmax", axis=-1)
    if mask is not None:
        # A query that sees no key gives zeros.
        is_blind = scores.apply("max", axis=-1, keepdims=True).apply("equal", -math.inf)
        weights = is_blind.apply("where", 0.0, weights)
    return weights.apply("matmul", v)


def _for_all_heads(x: Value, q: Value) -> Value:
    """Return keys or values with a head for each of the queries'."""
    batches, own, rows, width = x.shape
    heads = q.shape[1]
    if own == heads:
        return x
    shared = fixed_size(heads) // fixed_size(own)
    wide = x.reshape(batches, own, 1, rows, width)
    wide = wide.apply("broadcast_to", shape=(batches, own, shared, rows, width))
    return wide.reshape(batches, heads, rows, width)


def _flash(
    c: Call,
    q: Value,
    k: Value,
    v: Value,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    attn_mask: Value | None = None,
    scale: float | None = None,
) -> tuple[Value, None]:
    if dropout_p:
        raise Refused("attention that drops has no kernel")
    return _attention(c, q, k, v, attn_mask, is_causal, scale), None


def _laid_out(mask: Value, scores: tuple[Any, ...]) -> Value:
    """Return a mask whose batches are the scores' or one for all, which is what kernels read."""
    while mask.ndim < 2:
        mask = mask.reshape(1, *mask.shape)
    wide = mask if mask.shape[-1] == scores[-1] else None
    outer = mask.shape[:-2]
    alike = outer == scores[:-2] or all(extent == 1 for extent in outer)
    if wide is not None and alike:
        return mask
    lead = (1,) * (len(scores) - mask.ndim)
    mask = mask.reshape(*lead, *mask.shape)
    return mask.apply("broadcast_to", shape=(*scores[:-2], mask.shape[-2], scores[-1]))


ROWS: Mapping[str, Row] = {
    "aten.mm.default": _matmul,
    "aten.bmm.default": _matmul,
    "opkit.int8_product.default": _matmul,
    "aten.addmm.default": _addmm,
    "aten.baddbmm.default": _addmm,
    "aten._scaled_dot_product_flash_attention_for_cpu.default": _flash,
    "opkit.attention.default": _attention,
}
