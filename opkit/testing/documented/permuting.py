"""What operators compute that choose experts, quantise what is routed, and move gradients back.

Rows are in the order of their experts. Padded modes and parts of the rows have no reference.
Sources: the documents of each operator, formula and parameters.
"""

from __future__ import annotations

from opkit.testing.documented.quantising import by_row
from opkit.testing.documented.routing import sorted_indices_of, weighted_gradients
from opkit.testing.documented.table import Tensor, documented, torch


def _summed(rows: Tensor, sorted_indices: Tensor, tokens: int) -> Tensor:
    """The sum of the rows that each token became; rows by columns gives tokens by columns."""
    return rows[sorted_indices.long()].reshape(tokens, -1, rows.shape[-1]).sum(1)


def _all_rows(places: list[int], rows: int) -> bool:
    return list(places) == [0, rows]


@documented("moe_token_permute_with_ep_grad")
def moe_token_permute_with_ep_grad(
    dy: Tensor,
    sorted_indices: Tensor,
    dprobs: Tensor | None,
    *,
    num_topk: int,
    range: list[int],
    padded_mode: bool,
) -> tuple[Tensor, Tensor | None] | None:
    """The sum of the gradients of the rows that a token became, and those of its probabilities."""
    places = sorted_indices.long()
    if padded_mode or not _all_rows(range, places.numel()):
        return None
    chances = None if dprobs is None else dprobs[places].reshape(-1, num_topk)
    return _summed(dy, places, places.numel() // num_topk), chances


@documented("moe_token_unpermute_with_ep_grad")
def moe_token_unpermute_with_ep_grad(
    dy: Tensor,
    sorted_indices: Tensor,
    permuted_tokens: Tensor | None,
    probs: Tensor | None,
    *,
    padded_mode: bool,
    restore_shape: list[int],
    range: list[int],
    topk_num: int,
) -> tuple[Tensor, Tensor | None] | None:
    """The gradients of the rows that a token became, and of their probabilities."""
    del restore_shape  # of the padded mode
    places = sorted_indices.long()
    if padded_mode or not _all_rows(range, places.numel()) or permuted_tokens is None:
        return None
    if probs is None or probs.shape[-1] != topk_num:
        return None
    return weighted_gradients(permuted_tokens, permuted_tokens[places], probs, places, dy)


@documented("moe_finalize_routing_v2_grad")
def moe_finalize_routing_grad(
    dy: Tensor,
    expanded_row_idx: Tensor,
    expanded_x: Tensor | None,
    scales: Tensor | None,
    expert_idx: Tensor | None,
    bias: Tensor | None,
    *,
    drop_pad_mode: int,
    active_num: int,
    expert_num: int,
    expert_capacity: int,
) -> tuple[Tensor, Tensor] | None:
    """The gradients of the rows that a token became, and of their scales."""
    del expert_num, expert_capacity  # of the mode that drops tokens
    if drop_pad_mode != 0 or active_num != 0 or scales is None or expanded_x is None:
        return None
    places = expanded_row_idx.long()
    rows = expanded_x[places]
    if bias is not None and expert_idx is not None:
        rows = rows + bias[expert_idx.long().flatten()]
    return weighted_gradients(expanded_x, rows, scales, places, dy)


@documented("moe_init_routing_quant")
def moe_init_routing_quant(
    x: Tensor,
    row_idx: Tensor,
    expert_idx: Tensor,
    *,
    active_num: int,
    scale: float,
    offset: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """Rows of x * scale + offset by expert in int8, where each row went, the experts in order."""
    order = sorted_indices_of(expert_idx)
    source = row_idx.flatten()[order].long()
    place = torch.empty_like(source).scatter(0, source, torch.arange(source.numel()))
    kept = min(active_num, x.shape[0]) * expert_idx.shape[-1]
    rows = x[source[:kept] % x.shape[0]]
    return rows * scale + offset, place, expert_idx.flatten()[order]


@documented("moe_init_routing_quant_v2")
def moe_init_routing_quant_by_mode(
    x: Tensor,
    expert_idx: Tensor,
    scale: Tensor | None,
    offset: Tensor | None,
    *,
    active_num: int,
    expert_capacity: int,
    expert_num: int,
    drop_pad_mode: int,
    expert_tokens_count_or_cumsum_flag: int,
    expert_tokens_before_capacity_flag: bool,
    quant_mode: int,
) -> tuple[Tensor, Tensor, Tensor | None, None, Tensor | None] | None:
    """Rows of x by expert in int8, by a given scale or by row, where each went, the counts.

    Of the modes the one that drops no token.
    """
    if drop_pad_mode != 0 or expert_capacity != 0 or expert_tokens_before_capacity_flag:
        return None
    order = sorted_indices_of(expert_idx)
    kept = order.numel() if active_num == 0 else min(active_num, order.numel())
    counts = torch.bincount(expert_idx.flatten().long(), minlength=max(expert_num, 1))
    tokens = {1: torch.cumsum(counts, 0), 2: counts}.get(expert_tokens_count_or_cumsum_flag)
    rows, scales = x[order[:kept] // expert_idx.shape[-1]], None
    if quant_mode == 0 and scale is not None and offset is not None:
        rows = rows * scale + offset
    elif quant_mode == 1 and scale is None:
        rows, scales = by_row(rows)
    else:
        return None
    return rows, sorted_indices_of(order), tokens, None, scales


@documented("moe_re_routing")
def moe_re_routing(
    tokens: Tensor,
    expert_token_num_per_rank: Tensor,
    per_token_scales: Tensor | None,
    *,
    expert_token_num_type: int,
    idx_type: int,
) -> tuple[Tensor, Tensor | None, Tensor, Tensor] | None:
    """Tokens of ranks in the order of their experts, their scales, whence each comes, the counts.

    Args:
        tokens: (tokens, columns), rank by rank, and of a rank expert by expert.
        expert_token_num_per_rank: (ranks, experts).
    """
    if expert_token_num_type != 1 or idx_type != 0:
        return None
    counts = expert_token_num_per_rank.long()
    experts = torch.arange(counts.shape[-1]).repeat(counts.shape[0])
    order = sorted_indices_of(torch.repeat_interleave(experts, counts.flatten()))
    scales = None if per_token_scales is None else per_token_scales[order]
    return tokens[order], scales, order, counts.sum(0)


@documented("moe_gating_top_k")
def moe_gating_top_k(
    x: Tensor,
    bias: Tensor | None,
    *,
    k: int,
    k_group: int,
    group_count: int,
    group_select_mode: int,
    renorm: int,
    norm_type: int,
    out_flag: bool,
    routed_scaling_factor: float,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor | None] | None:
    """The k largest of the sigmoid within the best groups of experts, shared out, and which."""
    if renorm != 0 or norm_type != 1 or x.dim() != 2:
        return None
    chances = torch.sigmoid(x)
    ranked = chances if bias is None else chances + bias
    if group_count > 1:
        groups = ranked.reshape(x.shape[0], group_count, -1)
        best = groups.topk(2).values.sum(-1) if group_select_mode == 1 else groups.amax(-1)
        chosen = torch.zeros_like(best).scatter(-1, best.topk(k_group).indices, 1.0)
        ranked = torch.where(chosen.unsqueeze(-1) > 0, groups, -torch.inf).flatten(1)
    experts = ranked.topk(k).indices
    values = chances.gather(-1, experts)
    shares = values / (values.sum(-1, True) + eps) * routed_scaling_factor
    return shares, experts, chances if out_flag else None
