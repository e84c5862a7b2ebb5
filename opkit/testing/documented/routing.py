"""What operators compute that route tokens to experts and back.

Sources: the documents of each operator, formula and parameters.
"""

from __future__ import annotations

from opkit.testing.documented.table import Tensor, documented, torch


def sorted_indices_of(keys: Tensor) -> Tensor:
    """The indices of keys in their order; of equal keys the first comes first."""
    return torch.sort(keys.flatten(), stable=True).indices


def weighted_gradients(
    moved: Tensor, rows: Tensor, weights: Tensor, indices: Tensor, dy: Tensor
) -> tuple[Tensor, Tensor]:
    """The gradients of a sum of weighted rows by the rows, each at its place, and by the weights.

    Args:
        moved: rows by columns, as the first gradient is.
        rows: those that the weights belong to: one for each weight, in their order.
        weights: tokens by the rows that each token became.
        indices: where each row lies in `moved`.
        dy: tokens by columns.
    """
    shares = (dy.unsqueeze(1) * weights.unsqueeze(-1)).reshape(-1, dy.shape[-1])
    by_rows = torch.zeros_like(moved).index_copy(0, indices, shares)
    return by_rows, (dy.unsqueeze(1) * rows.reshape(*weights.shape, -1)).sum(-1)


@documented("moe_compute_expert_tokens")
def moe_compute_expert_tokens(sorted_experts: Tensor, *, num_experts: int) -> Tensor:
    """How many rows belong to each expert and those before it."""
    return torch.searchsorted(sorted_experts, torch.arange(num_experts), right=True)


def _merged(
    expanded: Tensor, rows: Tensor, biases: Tensor, scales: Tensor, experts: Tensor
) -> Tensor:
    """The sum of scale * (expanded row + bias of its expert) for each token; rows by columns."""
    tokens, chosen = scales.shape
    picked = expanded[rows.flatten().long()].reshape(chosen, tokens, -1).transpose(0, 1)
    return (scales.unsqueeze(-1) * (picked + biases[experts.long()])).sum(1)


@documented("moe_finalize_routing")
def moe_finalize_routing(
    expanded_x: Tensor,
    x1: Tensor,
    x2: Tensor | None,
    bias: Tensor,
    scales: Tensor,
    expanded_row_idx: Tensor,
    expanded_expert_idx: Tensor,
) -> Tensor:
    """x1 + x2 + the sum over k of scales * (expanded_x at its row + the expert's bias)."""
    merged = _merged(expanded_x, expanded_row_idx, bias, scales, expanded_expert_idx)
    return merged + x1 + (0 if x2 is None else x2)


@documented("moe_finalize_routing")
def moe_finalize_routing_by_mode(
    expanded_x: Tensor,
    expanded_row_idx: Tensor,
    x1: Tensor | None,
    x2: Tensor | None,
    bias: Tensor | None,
    scales: Tensor | None,
    expert_idx: Tensor | None,
    *,
    drop_pad_mode: int,
) -> Tensor | None:
    """x1 + x2 + the sum over k of scales * (expanded_x at its row + the expert's bias).

    Of the modes the one that drops no token and has its rows by columns.
    """
    if drop_pad_mode != 0 or bias is None or scales is None or expert_idx is None:
        return None
    merged = _merged(expanded_x, expanded_row_idx, bias, scales, expert_idx)
    return merged + (0 if x1 is None else x1) + (0 if x2 is None else x2)


def _largest(x: Tensor, finished: Tensor | None, k: int) -> tuple[Tensor, Tensor]:
    """The k largest of each row and their indices; of a finished row the number of columns."""
    values, indices = torch.topk(x, k)
    if finished is not None:
        indices = torch.where(finished.bool().unsqueeze(-1), x.shape[-1], indices)
    return values, indices


@documented("moe_gating_top_k_softmax")
def moe_gating_top_k_softmax(
    x: Tensor, finished: Tensor | None, *, k: int
) -> tuple[Tensor, Tensor, Tensor]:
    """The k largest of the softmax, their experts, and numbers of rows by columns."""
    values, experts = _largest(torch.softmax(x, -1), finished, k)
    rows = torch.arange(experts.numel()).reshape(k, -1).T.reshape(experts.shape)
    return values, experts, rows


@documented("moe_gating_top_k_softmax_v2")
def moe_gating_top_k_softmax_in_order(
    x: Tensor,
    finished: Tensor | None,
    *,
    k: int,
    renorm: int,
    output_softmax_result_flag: bool,
) -> tuple[Tensor, Tensor, Tensor | None]:
    """The k largest of the softmax, or the softmax of the k largest, with their experts."""
    if renorm == 1:
        values, experts = _largest(x, finished, k)
        return torch.softmax(values, -1), experts, None
    whole = torch.softmax(x, -1)
    return (*_largest(whole, finished, k), whole if output_softmax_result_flag else None)


@documented("moe_init_routing")
def moe_init_routing(
    x: Tensor, row_idx: Tensor, expert_idx: Tensor, *, active_num: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Rows of x in the order of their experts, where each row went, and the experts in order."""
    order = sorted_indices_of(expert_idx)
    source = row_idx.flatten()[order].long()
    place = torch.empty_like(source).scatter(0, source, torch.arange(source.numel()))
    kept = min(active_num, x.shape[0]) * expert_idx.shape[-1]
    return x[source[:kept] % x.shape[0]], place, expert_idx.flatten()[order]


@documented("moe_init_routing_v2")
def moe_init_routing_by_mode(
    x: Tensor,
    expert_idx: Tensor,
    *,
    active_num: int,
    expert_capacity: int,
    expert_num: int,
    drop_pad_mode: int,
    expert_tokens_count_or_cumsum_flag: int,
    expert_tokens_before_capacity_flag: bool,
) -> tuple[Tensor, Tensor, Tensor | None, None] | None:
    """Rows of x in the order of their experts, where each went, how many each expert has.

    Of the modes the one that drops no token.
    """
    if drop_pad_mode != 0 or expert_capacity != 0 or expert_tokens_before_capacity_flag:
        return None
    order = sorted_indices_of(expert_idx)
    kept = order.numel() if active_num == 0 else min(active_num, order.numel())
    counts = torch.bincount(expert_idx.flatten().long(), minlength=max(expert_num, 1))
    tokens = {1: torch.cumsum(counts, 0), 2: counts}.get(expert_tokens_count_or_cumsum_flag)
    return x[order[:kept] // expert_idx.shape[-1]], sorted_indices_of(order), tokens, None


@documented("moe_init_routing_v2_grad")
def moe_init_routing_grad(
    dy: Tensor, expanded_row_idx: Tensor, *, top_k: int, drop_pad_mode: int, active_num: int
) -> Tensor | None:
    """The sum of the gradients of the top_k rows that a token became."""
    if drop_pad_mode != 0 or active_num != 0:
        return None
    return dy[expanded_row_idx.long()].reshape(-1, top_k, dy.shape[-1]).sum(1)


@documented("moe_token_permute")
def moe_token_permute(
    tokens: Tensor, indices: Tensor, *, num_out_tokens: int, padded_mode: bool
) -> tuple[Tensor, Tensor] | None:
    """Tokens in the order of their experts, and where each went."""
    if padded_mode:
        return None
    order = sorted_indices_of(indices)
    kept = order.numel() if num_out_tokens == 0 else num_out_tokens
    return tokens[order[:kept] // (indices.numel() // indices.shape[0])], sorted_indices_of(order)


@documented("moe_token_permute_grad")
def moe_token_permute_grad(
    dy: Tensor, sorted_indices: Tensor, *, num_topk: int, padded_mode: bool
) -> Tensor | None:
    """The sum of the gradients of the rows that a token became."""
    if padded_mode:
        return None
    return dy[sorted_indices.long()].reshape(-1, num_topk, dy.shape[-1]).sum(1)


@documented("moe_token_permute_with_ep")
def moe_token_permute_with_ep(
    tokens: Tensor,
    indices: Tensor,
    probs: Tensor | None,
    *,
    range: list[int],
    num_out_tokens: int,
    padded_mode: bool,
) -> tuple[Tensor, Tensor, Tensor | None] | None:
    """Tokens and probabilities in the order of their experts, those of a range of indices."""
    first, last = range
    if padded_mode or num_out_tokens != 0 or last <= first:
        return None
    order = sorted_indices_of(indices)
    kept = order[first:last]
    chances = None if probs is None else probs.flatten()[kept]
    return tokens[kept // (indices.numel() // indices.shape[0])], sorted_indices_of(order), chances


@documented("moe_token_unpermute")
def moe_token_unpermute(
    permuted_tokens: Tensor,
    sorted_indices: Tensor,
    probs: Tensor | None,
    *,
    padded_mode: bool,
    restore_shape: list[int],
) -> Tensor | None:
    """The sum of probability * row over the rows that a token became."""
    del restore_shape  # of the padded mode
    if padded_mode:
        return None
    rows = permuted_tokens[sorted_indices.long()]
    if probs is None:
        return rows
    return (rows.reshape(*probs.shape, -1) * probs.unsqueeze(-1)).sum(1)


@documented("moe_token_unpermute_grad")
def moe_token_unpermute_grad(
    permuted_tokens: Tensor,
    dy: Tensor,
    sorted_indices: Tensor,
    probs: Tensor | None,
    *,
    padded_mode: bool,
    restore_shape: list[int],
) -> tuple[Tensor, Tensor | None] | None:
    """The gradients of the rows that a token became, and of their probabilities."""
    del restore_shape  # of the padded mode
    if padded_mode:
        return None
    indices = sorted_indices.long()
    if probs is None:
        return torch.empty_like(permuted_tokens).index_copy(0, indices, dy), None
    return weighted_gradients(permuted_tokens, permuted_tokens[indices], probs, indices, dy)


@documented("moe_token_unpermute_with_ep")
def moe_token_unpermute_with_ep(
    permuted_tokens: Tensor,
    sorted_indices: Tensor,
    probs: Tensor | None,
    *,
    num_topk: int,
    range: list[int],
    padded_mode: bool,
    restore_shape: list[int],
) -> Tensor | None:
    """The sum of probability * row over the rows of a range of indices that a token became."""
    first, last = range
    del restore_shape  # of the padded mode
    if padded_mode or last <= first:
        return None
    indices = sorted_indices.long()
    inside = (indices >= first) & (indices < last)
    rows = permuted_tokens[torch.where(inside, indices - first, 0)] * inside.unsqueeze(-1)
    rows = rows.reshape(-1, num_topk, permuted_tokens.shape[-1])
    return (rows if probs is None else rows * probs.reshape(-1, num_topk, 1)).sum(1)
