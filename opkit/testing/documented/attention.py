"""What operators of attention compute, without masks, quantisation, pages and shared prefixes.

Sources: the documents of each operator, formula and parameters.
"""

from __future__ import annotations

from opkit.testing.documented.table import Tensor, Tensors, documented, torch

# Axes of (batch, heads, rows, columns) in each layout that has four of them.
_AXES = {"BNSD": (0, 1, 2, 3), "BSND": (0, 2, 1, 3)}


def _heads_of(x: Tensor, layout: str, heads: int) -> Tensor | None:
    """Return a tensor as (batch, heads, rows, columns); None where its layout has no such form."""
    if layout == "BSH" and x.dim() == 3 and x.shape[-1] % heads == 0:
        return x.unflatten(-1, (heads, -1)).transpose(1, 2)
    if layout in _AXES and x.dim() == 4:
        return x.permute(_AXES[layout])
    return None


def _in_layout(x: Tensor, layout: str) -> Tensor:
    if layout == "BSH":
        return x.transpose(1, 2).flatten(2)
    return x.permute(_AXES[layout])


def _attention(
    query: Tensor, key: Tensor, value: Tensor, layout: str, heads: tuple[int, int], scale: float
) -> tuple[Tensor, Tensor] | None:
    """The attention in the layout of the query, and log of the sum of exp of each row's scores."""
    of_query, of_keys = heads[0], heads[1] or heads[0]
    q = _heads_of(query, layout, of_query)
    k, v = (_heads_of(one, layout, of_keys) for one in (key, value))
    if q is None or k is None or v is None or of_query % of_keys != 0:
        return None
    k, v = (one.repeat_interleave(of_query // of_keys, 1) for one in (k, v))
    scores = q @ k.transpose(-1, -2) * scale
    rows = torch.softmax(scores, -1) @ v
    return _in_layout(rows, layout), torch.logsumexp(scores, -1, keepdim=True)


@documented("prompt_flash_attention")
def prompt_flash_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    *,
    num_heads: int,
    scale_value: float,
    pre_tokens: int,
    next_tokens: int,
    input_layout: str,
    num_key_value_heads: int,
    sparse_mode: int,
    inner_precise: int,
) -> Tensor | None:
    """softmax(query * key^T * scale) * value, by heads."""
    del pre_tokens, next_tokens, inner_precise  # of masks, and of how it is computed
    heads = (num_heads, num_key_value_heads)
    found = _attention(query, key, value, input_layout, heads, scale_value)
    return None if found is None or sparse_mode != 0 else found[0]


@documented("incre_flash_attention")
def incre_flash_attention(
    query: Tensor,
    key: Tensors,
    value: Tensors,
    *,
    num_heads: int,
    scale_value: float,
    input_layout: str,
    num_key_value_heads: int,
    block_size: int,
    inner_precise: int,
) -> Tensor | None:
    """softmax(query * key^T * scale) * value for the one row of each query, by heads."""
    del inner_precise
    if len(key) != 1 or len(value) != 1 or block_size != 0:
        return None
    heads = (num_heads, num_key_value_heads)
    found = _attention(query, key[0], value[0], input_layout, heads, scale_value)
    return None if found is None else found[0]
