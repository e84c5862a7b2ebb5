"""Cases of operators that choose experts, quantise routed tokens, and move gradients back.

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

__all__ = ["PERMUTING_CASES"]

# Tokens, columns, experts that a token goes to, experts.
_SIZES = ((8, 16, 1, 4), (7, 33, 2, 8), (16, 64, 4, 16), (61, 256, 2, 5))


def _numbers(values: list[int]) -> Source:
    return given(*map(float, values))


_ADDED = dict.fromkeys(("grad_y", "expanded_x", "bias"), POSITIVE) | {"scales": PROBABILITY}
# What kernels add up in halves has no digits left where it cancels.
_GRADIENTS = dict.fromkeys(
    (*("unpermuted_tokens_grad", "permuted_tokens", "permuted_tokens_output_grad"),),
    POSITIVE,
)

PERMUTING_CASES: dict[str, tuple[Together, ...]] = {
    "moe_finalize_routing_v2_grad": tuple(
        Together(
            (
                *((tokens, columns), (tokens * k,), (tokens * k, columns)),
                *((tokens, k), (tokens, k), (experts, columns)),
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
    "moe_gating_top_k": tuple(
        Together(
            ((rows, columns), (columns,) if biased else None),
            {
                **{"k": k, "k_group": chosen, "group_count": groups, "norm_type": 1},
                "group_select_mode": int(groups > 1),
            },
            {"bias": PROBABILITY, "x": apart(rows, columns)},
        )
        for rows, columns, k, chosen, groups in (
            *((8, 64, 4, 1, 1), (7, 128, 2, 1, 1)),
            *((33, 256, 8, 4, 8), (61, 64, 3, 2, 4)),
        )
        for biased in (True, False)
    ),
    "moe_init_routing_quant": tuple(
        Together(
            ((tokens, columns), (tokens, k), (tokens, k)),
            {"active_num": tokens, "scale": 20.0, "offset": -3.0},
            {
                "row_idx": _numbers([c * tokens + r for r in range(tokens) for c in range(k)]),
                "expert_idx": places_of(experts),
            },
        )
        for tokens, columns, k, experts in _SIZES
    ),
    "moe_init_routing_quant_v2": tuple(
        Together(
            ((tokens, columns), (tokens, k), *([(1,), (1,)] if mode == 0 else [None, None])),
            {
                **{"expert_num": experts, "quant_mode": mode},
                "expert_tokens_count_or_cumsum_flag": 1 + mode,
            },
            {"expert_idx": places_of(experts)}
            | ({"scale": given(20.0), "offset": given(-3.0)} if mode == 0 else {}),
        )
        for tokens, columns, k, experts in _SIZES
        for mode in (0, 1)
    ),
    "moe_re_routing": tuple(
        Together(
            ((tokens, columns), (ranks, experts), (tokens,)),
            {},
            {
                "expert_token_num_per_rank": _numbers(
                    [tokens - (ranks * experts - 1) * each] + [each] * (ranks * experts - 1)
                )
            },
        )
        for tokens, columns, ranks, experts, each in (
            *((8, 16, 1, 4, 1), (33, 64, 2, 3, 5), (64, 256, 4, 2, 7)),
        )
    ),
    "moe_token_permute_with_ep_grad": tuple(
        Together(
            ((tokens * k, columns), (tokens * k,), (tokens * k,)),
            {"num_topk": k, "range": (0, tokens * k)},
            {"sorted_indices": different(tokens * k), **_GRADIENTS},
        )
        for tokens, columns, k, _ in _SIZES
    ),
    "moe_token_unpermute_with_ep_grad": tuple(
        Together(
            ((tokens, columns), (tokens * k,), (tokens * k, columns), (tokens, k)),
            {"topk_num": k, "range": (0, tokens * k)},
            {"sorted_indices": different(tokens * k), "probs": PROBABILITY, **_GRADIENTS},
        )
        for tokens, columns, k, _ in _SIZES
    ),
}
"""As `opkit.testing.cases.operator_cases.TOGETHER`, of which these are a part."""
