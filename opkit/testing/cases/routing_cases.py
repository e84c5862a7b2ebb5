"""Cases of operators that route tokens to experts and back, of attention and rotary embeddings.

Sources: the documents of each operator, parameters and constraints.
"""

from __future__ import annotations

from opkit.testing.cases.together import (
    POSITIVE,
    PROBABILITY,
    Together,
    apart,
    different,
    given,
    places_of,
)
from opkit.testing.cases.values import Source

__all__ = ["ROUTING_CASES"]

# Tokens, columns, experts that a token goes to, experts.
_SIZES = ((8, 16, 1, 4), (7, 33, 2, 8), (16, 64, 4, 16), (61, 257, 2, 5))


def _by_columns(rows: int, columns: int) -> Source:
    """Numbers of rows as gating gives them: down the first column, then the second."""
    return Source(values=tuple(float(c * rows + r) for r in range(rows) for c in range(columns)))


def _routed(tokens: int, chosen: int, experts: int) -> Source:
    """A map by which each token goes to so many experts, others for the next token."""
    return given(
        *(
            float((expert * 3 + token) % experts < chosen)
            for token in range(tokens)
            for expert in range(experts)
        )
    )


# Rows of x, and the axes that all rows of a position share.
_TURNED = (
    ((1, 1, 4, 64), (1, 1, 4, 64)),
    ((2, 3, 5, 64), (1, 1, 5, 64)),
    ((2, 5, 3, 128), (1, 5, 1, 128)),
    ((3, 17, 2, 128), (3, 17, 1, 128)),
)

# Batches, rows, heads of queries, heads of keys.
_ATTENDED = ((1, 16, 1, 1), (2, 65, 4, 2), (1, 257, 2, 2))

# Kernels add up halves in halves: what cancels out has no digits left.
_ADDED = {"scales": PROBABILITY} | dict.fromkeys(("expanded_x", "x1", "x2", "bias"), POSITIVE)

ROUTING_CASES: dict[str, tuple[Together, ...]] = {
    "apply_rotary_pos_emb": tuple(
        Together(
            (
                *((batch, rows, heads, 128), (batch, rows, keys, 128)),
                *[(batch, rows, 1, 128)] * 2,
            )
        )
        for batch, rows, heads, keys in ((1, 1, 1, 1), (2, 5, 4, 1), (3, 17, 8, 2), (1, 64, 3, 3))
    ),
    "interleave_rope": tuple(
        Together(((batch, heads, rows, 64), (batch, 1, rows, 64), (batch, 1, rows, 64)))
        for batch, heads, rows in ((1, 1, 1), (2, 3, 5), (3, 8, 17), (32, 1, 1))
    ),
    "moe_compute_expert_tokens": tuple(
        Together(
            ((rows,),),
            {"num_experts": experts},
            {"sorted_experts": given(*(float(r * experts // rows) for r in range(rows)))},
        )
        for rows, experts in ((8, 4), (33, 7), (65, 128), (1031, 33))
    ),
    "moe_finalize_routing": tuple(
        Together(
            (
                *((tokens * k, columns), (tokens, columns), (tokens, columns)),
                *((experts, columns), (tokens, k), (tokens * k,), (tokens, k)),
            ),
            {},
            {
                "expanded_row_idx": different(tokens * k),
                "expanded_expert_idx": places_of(experts),
                **_ADDED,
            },
        )
        for tokens, columns, k, experts in _SIZES
    ),
    "moe_finalize_routing_v2": tuple(
        Together(
            (
                *((tokens * k, columns), (tokens * k,), (tokens, columns), (tokens, columns)),
                *((experts, columns), (tokens, k), (tokens, k)),
            ),
            {},
            {
                "expanded_row_idx": different(tokens * k),
                "expert_idx": places_of(experts),
                **_ADDED,
            },
        )
        for tokens, columns, k, experts in _SIZES
    ),
    "moe_gating_top_k_softmax": tuple(
        Together(((rows, columns), None), {"k": k}, {"x": apart(rows, columns)})
        for rows, columns, k in ((8, 8, 1), (7, 33, 2), (61, 64, 4), (33, 257, 8))
    ),
    "moe_gating_top_k_softmax_v2": tuple(
        Together(
            ((rows, columns), None),
            {"k": k, "renorm": order},
            {"x": apart(rows, columns)},
        )
        for rows, columns, k in ((8, 8, 1), (7, 33, 2), (33, 257, 8))
        for order in (0, 1)
    ),
    "moe_init_routing": tuple(
        Together(
            ((tokens, columns), (tokens, k), (tokens, k)),
            {"active_num": tokens},
            {"row_idx": _by_columns(tokens, k), "expert_idx": places_of(experts)},
        )
        for tokens, columns, k, experts in _SIZES
    ),
    "moe_init_routing_v2": tuple(
        Together(
            ((tokens, columns), (tokens, k)),
            {"expert_num": experts, "expert_tokens_count_or_cumsum_flag": flag},
            {"expert_idx": places_of(experts)},
        )
        for tokens, columns, k, experts in _SIZES
        for flag in (1, 2)
    ),
    "moe_init_routing_v2_grad": tuple(
        Together(
            ((tokens * k, columns), (tokens * k,)),
            {"top_k": k},
            {"expanded_row_idx": different(tokens * k)},
        )
        for tokens, columns, k, _ in _SIZES
    ),
    "moe_token_permute": tuple(
        Together(((tokens, columns), (tokens, k)), {}, {"indices": places_of(experts)})
        for tokens, columns, k, experts in _SIZES
    ),
    "moe_token_permute_grad": tuple(
        Together(
            ((tokens * k, columns), (tokens * k,)),
            {"num_topk": k},
            {"sorted_indices": different(tokens * k)},
        )
        for tokens, columns, k, _ in _SIZES
    ),
    "moe_token_permute_with_ep": tuple(
        Together(
            ((tokens, columns), (tokens, k), (tokens, k)),
            {"range": (first, tokens * k - first)},
            {"indices": places_of(experts)},
        )
        for tokens, columns, k, experts in _SIZES
        for first in (0, 3)
    ),
    "moe_token_unpermute": tuple(
        Together(
            ((tokens * k, columns), (tokens * k,), (tokens, k)),
            {},
            {"sorted_indices": different(tokens * k), "probs": PROBABILITY},
        )
        for tokens, columns, k, _ in _SIZES
    ),
    "moe_token_unpermute_grad": tuple(
        Together(
            ((tokens * k, columns), (tokens, columns), (tokens * k,), (tokens, k)),
            {},
            {"sorted_indices": different(tokens * k), "probs": PROBABILITY},
        )
        for tokens, columns, k, _ in _SIZES
    ),
    "moe_token_unpermute_with_ep": tuple(
        Together(
            ((tokens * k, columns), (tokens * k,), (tokens, k)),
            {"num_topk": k, "range": (0, tokens * k)},
            {"sorted_indices": different(tokens * k), "probs": PROBABILITY},
        )
        for tokens, columns, k, _ in _SIZES
    ),
    "moe_token_permute_with_routing_map": tuple(
        Together(
            ((tokens, columns), (tokens, experts), (tokens, experts) if weighs else None),
            {"num_out_tokens": tokens * k},
            {"routing_map": _routed(tokens, k, experts)},
        )
        for tokens, columns, k, experts in _SIZES
        for weighs in (True, False)
    ),
    "moe_token_permute_with_routing_map_grad": tuple(
        Together(
            ((tokens * k, columns), (tokens * k,), (tokens * k,), (tokens, experts)),
            {"num_experts": experts, "tokens_num": tokens},
            {
                "sorted_indices": different(tokens * k),
                "routing_map_optional": _routed(tokens, k, experts),
            },
        )
        for tokens, columns, k, experts in _SIZES
    ),
    "moe_token_unpermute_with_routing_map": tuple(
        Together(
            ((tokens * k, columns), (tokens * k,), (tokens, experts), (tokens, experts)),
            {"restore_shape": (tokens, columns)},
            {
                "sorted_indices": different(tokens * k),
                "routing_map": _routed(tokens, k, experts),
                "probs": PROBABILITY,
            },
        )
        for tokens, columns, k, experts in _SIZES
    ),
    "moe_token_unpermute_with_routing_map_grad": tuple(
        Together(
            (
                *((tokens, columns), (tokens * k,), (tokens * k,), (tokens, experts)),
                *((tokens * k, columns), (tokens, experts)),
            ),
            {"restore_shape": (tokens, columns)},
            {
                "out_index": different(tokens * k),
                "permute_token_id": given(*(float(row // k) for row in range(tokens * k))),
                "routing_map": _routed(tokens, k, experts),
                "probs": PROBABILITY,
            },
        )
        for tokens, columns, k, experts in _SIZES
    ),
    "incre_flash_attention": tuple(
        Together(
            ((batch, 1, heads * 64), (batch, rows, keys * 64), (batch, rows, keys * 64)),
            {"num_heads": heads, "num_key_value_heads": keys, "scale_value": 0.125},
        )
        for batch, rows, heads, keys in _ATTENDED
    ),
    "prompt_flash_attention": tuple(
        Together(
            (
                (batch, heads, rows, 64),
                *[(batch, keys, rows, 64)] * 2,
            )
            if layout == "BNSD"
            else ((batch, rows, heads * 64), *[(batch, rows, keys * 64)] * 2),
            {
                **{"num_heads": heads, "num_key_value_heads": keys, "scale_value": 0.125},
                "input_layout": layout,
            },
        )
        for batch, rows, heads, keys in _ATTENDED
        for layout in ("BSH", "BNSD")
    ),
    "rope_with_sin_cos_cache": tuple(
        Together(
            ((tokens,), (tokens, heads * size), (tokens, keys * size), (97, turned)),
            {
                **{"numQHeads": heads, "numKHeads": keys, "headSize": size},
                **{"qStride": heads * size, "kStride": keys * size, "isNeoxStyle": in_halves},
            },
            {"positions": places_of(97)},
        )
        for tokens, heads, keys, size, turned in (
            *((1, 1, 1, 64, 64), (7, 4, 2, 64, 32), (61, 8, 1, 128, 128)),
        )
        for in_halves in (True, False)
    ),
    "rotary_position_embedding": tuple(
        Together((whole, shared, shared), {"mode": mode})
        for whole, shared in _TURNED
        for mode in (0, 1)
    ),
    "rotary_position_embedding_grad": tuple(
        Together((whole, shared, shared, whole), {"mode": mode})
        for whole, shared in _TURNED
        for mode in (0, 1)
    ),
}
