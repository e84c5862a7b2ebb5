"""References of operators that move tokens by a routing map, against loops and gradients."""

from __future__ import annotations

import numpy as np
import pytest

from opkit.testing.cases import TOGETHER
from opkit.testing.cases.permuting_cases import PERMUTING_CASES
from opkit.testing.documented import documented_as

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

MAP = torch.tensor([[1, 0, 1], [0, 1, 1], [1, 1, 0]])
OF_ROW = [0, 2, 1, 2, 0, 1]
"""Tokens of the rows, expert by expert."""
PLACES = torch.tensor([0, 4, 2, 5, 1, 3])


def call(operator: str, *values: object, **attrs: object) -> tuple[torch.Tensor, ...]:
    (function,) = documented_as(operator)
    found = function.function(*values, **attrs)
    assert found is not None
    return tuple(found)


def test_a_routing_map_moves_tokens_and_back() -> None:
    tokens, chances = torch.rand(3, 4), torch.rand(3, 3)
    permuted, of_rows, places = call(
        "moe_token_permute_with_routing_map",
        *(tokens, MAP, chances),
        num_out_tokens=6,
        drop_and_pad=False,
    )
    assert torch.equal(permuted, tokens[OF_ROW]) and torch.equal(places, PLACES)
    experts = [0, 0, 1, 1, 2, 2]
    assert torch.equal(of_rows, chances[OF_ROW, experts])
    merged, *_ = call(
        "moe_token_unpermute_with_routing_map",
        *(permuted, places, MAP, chances),
        drop_and_pad=False,
        restore_shape=[3, 4],
    )
    expected = tokens * (chances * MAP).sum(1, keepdim=True)
    torch.testing.assert_close(merged, expected)


def test_gradients_by_a_routing_map_are_autograds() -> None:
    tokens, chances = torch.rand(3, 4, requires_grad=True), torch.rand(3, 3, requires_grad=True)
    given = {"num_out_tokens": 6, "drop_and_pad": False}
    permuted, of_rows, places = call(
        "moe_token_permute_with_routing_map", tokens, MAP, chances, **given
    )
    dy, dprobs = torch.rand(6, 4), torch.rand(6)
    expected = torch.autograd.grad((permuted, of_rows), (tokens, chances), (dy, dprobs))
    found = call(
        "moe_token_permute_with_routing_map_grad",
        *(dy, dprobs, places, MAP),
        num_experts=3,
        tokens_num=3,
        padded_mode=False,
    )
    torch.testing.assert_close(found, expected)

    rows = torch.rand(6, 4, requires_grad=True)
    merged, *_ = call(
        "moe_token_unpermute_with_routing_map",
        *(rows, places, MAP, chances),
        drop_and_pad=False,
        restore_shape=[3, 4],
    )
    dy = torch.rand(3, 4)
    expected = torch.autograd.grad(merged, (rows, chances), dy)
    of_token = torch.tensor([place // 2 for place in range(6)])
    found = call(
        "moe_token_unpermute_with_routing_map_grad",
        *(dy, places, of_token, MAP, rows.detach(), chances.detach()),
        drop_and_pad=False,
    )
    torch.testing.assert_close(found, expected)


def test_tokens_of_ranks_come_by_expert() -> None:
    # Rank 0 has one token for expert 0 and two for expert 1; rank 1 two and none.
    counts = torch.tensor([[1, 2], [2, 0]])
    tokens = torch.arange(5.0).reshape(5, 1)
    moved, scales, whence, of_experts = call(
        "moe_re_routing", tokens, counts, torch.arange(5.0), expert_token_num_type=1, idx_type=0
    )
    assert moved.flatten().tolist() == scales.tolist() == whence.tolist() == [0, 3, 4, 1, 2]
    assert of_experts.tolist() == [3, 2]


def test_experts_outside_of_the_best_groups_are_not_chosen() -> None:
    x = torch.tensor([[3.0, -9.0, 2.0, 2.0]])
    attrs = {"k": 1, "k_group": 1, "group_count": 2, "renorm": 0, "norm_type": 1, "eps": 0.0}
    attrs |= {"out_flag": False, "routed_scaling_factor": 2.5}
    best_one = call("moe_gating_top_k", x, None, group_select_mode=0, **attrs)
    best_two = call("moe_gating_top_k", x, None, group_select_mode=1, **attrs)
    assert best_one[1].tolist() == [[0]] and best_two[1].tolist() in ([[2]], [[3]])
    assert best_two[0].tolist() == [[2.5]]


@pytest.mark.parametrize("operator", sorted(PERMUTING_CASES))
def test_every_case_has_a_result(operator: str) -> None:
    (function,) = documented_as(operator)
    placed = [p for p in function.parameters if not p.is_named]
    for case in TOGETHER[operator]:
        assert len(case.shapes) <= len(placed)
        for name, source in case.values.items():
            assert source.values is None or len(source.values) in [
                int(np.prod(shape)) for shape in case.shapes if shape is not None
            ], name
