"""References of operators that choose experts and move tokens, against loops and autograd."""

from __future__ import annotations

import numpy as np
import pytest

from opkit.testing.cases import TOGETHER
from opkit.testing.cases.permuting_cases import PERMUTING_CASES
from opkit.testing.documented import documented_as

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch


def call(operator: str, *values: object, **attrs: object) -> tuple[torch.Tensor, ...]:
    (function,) = documented_as(operator)
    found = function.function(*values, **attrs)
    assert found is not None
    return tuple(found)


def test_gradients_of_moving_tokens_are_autograds() -> None:
    rows, chances = torch.rand(6, 4, requires_grad=True), torch.rand(3, 2, requires_grad=True)
    places = torch.tensor([4, 0, 2, 5, 1, 3])
    merged = (rows[places].reshape(3, 2, 4) * chances.unsqueeze(-1)).sum(1)
    dy = torch.rand(3, 4)
    expected = torch.autograd.grad(merged, (rows, chances), dy)
    found = call(
        "moe_token_unpermute_with_ep_grad",
        *(dy, places, rows.detach(), chances.detach()),
        padded_mode=False,
        restore_shape=[1, 1],
        range=[0, 6],
        topk_num=2,
    )
    torch.testing.assert_close(found, expected)
    found = call(
        "moe_finalize_routing_v2_grad",
        *(dy, places, rows.detach(), chances.detach(), None, None),
        drop_pad_mode=0,
        active_num=0,
        expert_num=0,
        expert_capacity=0,
    )
    torch.testing.assert_close(found, expected)
    # Row places[i] is token i // 2.
    tokens, given = torch.rand(3, 4, requires_grad=True), torch.rand(3, 2, requires_grad=True)
    of_row = torch.argsort(places) // 2
    permuted, of_rows = tokens[of_row], given.flatten()[torch.argsort(places)]
    grads = (torch.rand(6, 4), torch.rand(6))
    expected = torch.autograd.grad((permuted, of_rows), (tokens, given), grads)
    found = call(
        "moe_token_permute_with_ep_grad",
        *(grads[0], places, grads[1]),
        num_topk=2,
        range=[0, 6],
        padded_mode=False,
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
