"""What operators compute that route tokens by a map: a truth value for each token and expert.

Each token goes to the same number of experts; rows lie in the order of their experts. The mode that
pads each expert to a number of rows is in none of them: which rows fill it up no document says.
Sources: the documents of each operator, formula and parameters.
"""

from __future__ import annotations

from opkit.testing.documented.routing import sorted_indices_of
from opkit.testing.documented.table import Tensor, documented, torch


def _by_experts(of_tokens: Tensor, routing_map: Tensor) -> Tensor:
    """What stands in a map's places, in the order of the experts."""
    return of_tokens.T.masked_select(routing_map.T.bool())


def _by_tokens(of_rows: Tensor, routing_map: Tensor) -> Tensor:
    """The same back in its places, and 0 elsewhere."""
    mask = routing_map.T.bool()
    return torch.zeros(mask.shape, dtype=of_rows.dtype).masked_scatter(mask, of_rows).T


@documented("moe_token_permute_with_routing_map")
def moe_token_permute_with_routing_map(
    tokens: Tensor,
    routing_map: Tensor,
    probs: Tensor | None,
    *,
    num_out_tokens: int,
    drop_and_pad: bool,
) -> tuple[Tensor, Tensor | None, Tensor] | None:
    """Tokens and chances in the order of their experts, and where each token's rows went."""
    del num_out_tokens  # the number of truth values
    if drop_and_pad:
        return None
    source = routing_map.T.bool().nonzero()[:, 1]
    chances = None if probs is None else _by_experts(probs, routing_map)
    return tokens[source], chances, sorted_indices_of(source)


@documented("moe_token_permute_with_routing_map_grad")
def moe_token_permute_with_routing_map_grad(
    of_rows: Tensor,
    of_chances: Tensor | None,
    sorted_indices: Tensor,
    routing_map: Tensor | None,
    *,
    num_experts: int,
    tokens_num: int,
    padded_mode: bool,
) -> tuple[Tensor, Tensor | None] | None:
    """The sum of the gradients of the rows that a token became, and those of its chances."""
    del num_experts  # an axis of the map
    if padded_mode:
        return None
    rows = of_rows[sorted_indices.long()].reshape(tokens_num, -1, of_rows.shape[-1]).sum(1)
    is_wanted = of_chances is not None and routing_map is not None
    return rows, _by_tokens(of_chances, routing_map) if is_wanted else None


@documented("moe_token_unpermute_with_routing_map")
def moe_token_unpermute_with_routing_map(
    permuted_tokens: Tensor,
    sorted_indices: Tensor,
    routing_map: Tensor | None,
    probs: Tensor | None,
    *,
    drop_and_pad: bool,
    restore_shape: list[int],
) -> tuple[Tensor, None, None, Tensor | None] | None:
    """The sum of chance * row over the rows that a token became, and the chances by experts."""
    if drop_and_pad:
        return None
    chances = None
    if probs is not None and routing_map is not None:
        chances = _by_experts(probs, routing_map)
        permuted_tokens = permuted_tokens * chances.unsqueeze(-1)
    rows = permuted_tokens[sorted_indices.long()]
    return rows.reshape(restore_shape[0], -1, restore_shape[1]).sum(1), None, None, chances


@documented("moe_token_unpermute_with_routing_map_grad")
def moe_token_unpermute_with_routing_map_grad(
    dy: Tensor,
    out_index: Tensor,
    permute_token_id: Tensor,
    routing_map: Tensor | None,
    permuted_tokens: Tensor | None,
    probs: Tensor | None,
    *,
    drop_and_pad: bool,
    restore_shape: list[int],
) -> tuple[Tensor, Tensor | None] | None:
    """The gradients of the rows that a token became, and of its chances."""
    del restore_shape
    if drop_and_pad:
        return None
    given = dy[permute_token_id.long()]
    rows = torch.zeros_like(given).index_copy(0, out_index.long(), given)
    if probs is None or routing_map is None or permuted_tokens is None:
        return rows, None
    to_chances = _by_tokens((rows * permuted_tokens).sum(-1), routing_map)
    return rows * _by_experts(probs, routing_map).unsqueeze(-1), to_chances
