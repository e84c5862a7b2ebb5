"""Attention kept whole on its way through AOTAutograd: an operator with a gradient of its own."""

from __future__ import annotations

import contextlib
import copy
import math
from collections.abc import Collection, Iterator
from typing import Any

import torch
from torch import Tensor, fx

__all__ = ["keep_attention_whole"]

_MOST_AXES = 4


@torch.library.custom_op("opkit::attention", mutates_args=())
def attention(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, is_causal: bool, scale: float | None
) -> Tensor:
    """Return softmax(q kᵀ scale + mask) v; a mask of truths says what is seen.

    Args:
        q: (batches, heads, queries, width).
        k: (batches, heads, keys, width), of as many heads, or of fewer that several of q's share.
        v: (batches, heads of k, keys, width).
    """
    result = torch.nn.functional.scaled_dot_product_attention(
        q,
        k,
        v,
        attn_mask=mask,
        is_causal=is_causal,
        scale=scale,
        enable_gqa=q.shape[1] != k.shape[1],
    )
    return result.contiguous()


@attention.register_fake
def _(q: Tensor, k: Tensor, v: Tensor, mask: Any, is_causal: bool, scale: float | None) -> Tensor:
    return q.new_empty((*q.shape[:-1], v.shape[-1]))


def _keep(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    q, k, v, mask, is_causal, scale = inputs
    ctx.save_for_backward(q, k, v, mask)
    ctx.is_causal = is_causal
    ctx.scale = 1 / math.sqrt(q.shape[-1]) if scale is None else scale


def _backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
    """The weights are computed again: they are larger than everything else that attention has."""
    q, k, v, mask = ctx.saved_tensors
    own, shared = k.shape[1], q.shape[1] // k.shape[1]
    if shared > 1:
        k, v = (each.repeat_interleave(shared, 1) for each in (k, v))
    scores = torch.matmul(q, k.transpose(-2, -1)) * ctx.scale
    seen = mask if mask is not None and mask.dtype == torch.bool else None
    if mask is not None and seen is None:
        scores = scores + mask
    if ctx.is_causal:
        seen = torch.ones(scores.shape[-2:], dtype=torch.bool, device=q.device).tril()
    if seen is not None:
        scores = torch.where(seen, scores, -math.inf)
    weights = torch.softmax(scores, -1)
    if mask is not None:
        # A query that sees no key gives zeros.
        weights = torch.where(scores.amax(-1, keepdim=True) == -math.inf, 0.0, weights)
    for_v = torch.matmul(weights.transpose(-2, -1), grad)
    for_weights = torch.matmul(grad, v.transpose(-2, -1))
    for_scores = weights * (for_weights - (for_weights * weights).sum(-1, keepdim=True))
    for_scores = for_scores * ctx.scale
    for_q = torch.matmul(for_scores, k)
    for_k = torch.matmul(for_scores.transpose(-2, -1), q)
    if shared > 1:
        apart = (-1, own, shared, *k.shape[2:])
        for_k = for_k.reshape(apart).sum(2)
        for_v = for_v.reshape(*apart[:-1], v.shape[-1]).sum(2)
    return for_q, for_k, for_v, None, None, None


attention.register_autograd(_backward, setup_context=_keep)


_TARGETS = (
    torch.nn.functional.scaled_dot_product_attention,
    torch.ops.aten.scaled_dot_product_attention.default,
)


@contextlib.contextmanager
def keep_attention_whole(module: fx.GraphModule) -> Iterator[None]:
    """Replace a traced module's calls of scaled_dot_product_attention, where nothing is dropped and
    the mask takes no gradient.

    The module's graph is another inside of the block only: it belongs to whoever had it traced.
    """
    found = [node.name for node in module.graph.nodes if _arguments(node) is not None]
    if not found:
        yield
        return
    own = module.graph
    module.graph = _with_attention(own, set(found))
    try:
        yield
    finally:
        module.graph = own


def _with_attention(own: fx.Graph, names: Collection[str]) -> fx.Graph:
    graph = copy.deepcopy(own)
    for before, node in zip(own.nodes, list(graph.nodes), strict=True):
        # AOTAutograd asks dynamo's inputs where they come from.
        if hasattr(before, "_dynamo_source"):
            node._dynamo_source = before._dynamo_source
        if before.name not in names:
            continue
        with graph.inserting_before(node):
            new = graph.call_function(torch.ops.opkit.attention.default, _arguments(node))
        new.meta = dict(node.meta)
        node.replace_all_uses_with(new)
        graph.erase_node(node)
    return graph


def _arguments(node: fx.Node) -> tuple[Any, ...] | None:
    """Return what the operator is called with; None where it does not serve."""
    if node.target not in _TARGETS:
        return None
    names = ("query", "key", "value", "attn_mask", "dropout_p", "is_causal")
    given = dict(zip(names, node.args, strict=False)) | dict(node.kwargs)
    q, k, v, mask = (given.get(name) for name in names[:4])
    if given.get("dropout_p", 0.0) != 0.0:
        return None
    tensors = [_example(each) for each in (q, k, v)]
    if any(each is None or each.dim() != _MOST_AXES for each in tensors):
        return None
    batches, heads = zip(*(each.shape[:2] for each in tensors if each is not None), strict=True)
    may_share = given.get("enable_gqa", False) and heads[0] % heads[1] == 0
    if len(set(batches)) != 1 or heads[1] != heads[2] or (heads[0] != heads[1] and not may_share):
        return None
    if isinstance(mask, fx.Node):
        example = _example(mask)
        if example is None or example.requires_grad:
            return None
        if example.dtype != torch.bool and example.dtype != tensors[0].dtype:  # type: ignore[union-attr]
            return None
    return (q, k, v, mask, bool(given.get("is_causal", False)), given.get("scale"))


def _example(node: Any) -> Tensor | None:
    if not isinstance(node, fx.Node):
        return None
    value = node.meta.get("example_value", node.meta.get("val"))
    return value if isinstance(value, Tensor) else None
