"""References of operators that route tokens and turn pairs, against loops in NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from opkit.schema import OpSpec
from opkit.testing.opdef_cases import library_cases
from opkit.testing.references.by_name import find_by_name
from tests.testing.test_by_name import _given, _normal, operator

pytestmark = pytest.mark.torch

EXPERTS = np.array([[2, 0], [1, 2], [0, 1]])
# Places of the six pairs in the order of their experts, the first of equal ones first.
ORDER = [1, 4, 2, 5, 0, 3]
PLACES = [4, 0, 2, 5, 1, 3]


def has_cases(spec: OpSpec) -> bool:
    found = find_by_name(spec)
    return found is not None and bool(library_cases(spec, found.expression, found=found))


def test_tokens_go_to_their_experts_and_back() -> None:
    (tokens, rows, chances) = _normal((3, 4), (6, 4), (3, 2))
    spec = operator(
        "MoeTokenPermute",
        "x indices:int32",
        "y at:int32",
        "num_out_tokens:int=0 padded_mode:bool=false",
    )
    permuted, places = _given(spec, tokens, EXPERTS, num_out_tokens=0, padded_mode=False)
    np.testing.assert_array_equal(permuted, tokens[[at // 2 for at in ORDER]])
    np.testing.assert_array_equal(places, PLACES)
    assert has_cases(spec)
    back = operator(
        "MoeTokenUnpermute",
        "x at:int32 probs?",
        "y",
        "padded_mode:bool=false restore_shape:list_int=[]",
    )
    (merged,) = _given(back, rows, np.array(PLACES), chances, padded_mode=False, restore_shape=[])
    expected = [
        sum(chances[token, k] * rows[PLACES[2 * token + k]] for k in range(2)) for token in range(3)
    ]
    np.testing.assert_allclose(merged, expected)
    assert has_cases(back)
    ranged = operator(
        "MoeTokenPermuteWithEp",
        "x indices:int32 probs?",
        "y at:int32 chances",
        "range:list_int=[0,0] num_out_tokens:int=0 padded_mode:bool=false",
    )
    attrs = {"range": [1, 4], "num_out_tokens": 0, "padded_mode": False}
    some, _, some_chances = _given(ranged, tokens, EXPERTS, chances, **attrs)
    np.testing.assert_array_equal(some, permuted[1:4])
    np.testing.assert_array_equal(some_chances, chances.flatten()[ORDER[1:4]])
    assert has_cases(ranged)


def test_tokens_go_by_a_map_to_their_experts_and_back() -> None:
    tokens, rows, chances, of_rows = _normal((3, 4), (6, 4), (3, 3), (6,))
    routing = np.zeros((3, 3), bool)
    np.put_along_axis(routing, EXPERTS, True, axis=1)
    # Rows in the order of experts: of each those of the first token first.
    order = [(expert, token) for expert, token in np.ndindex(3, 3) if routing[token, expert]]
    places = [at for t in range(3) for at, (_, token) in enumerate(order) if token == t]
    spec = operator(
        "MoeTokenPermuteWithRoutingMap",
        "tokens routing_map:bool probs?",
        "y p at:int32",
        "num_out_tokens:int drop_and_pad:bool=false",
    )
    attrs = {"num_out_tokens": 6, "drop_and_pad": False}
    permuted, taken, found = _given(spec, tokens, routing, chances, **attrs)
    np.testing.assert_array_equal(permuted, tokens[[token for _, token in order]])
    np.testing.assert_array_equal(taken, [chances[token, expert] for expert, token in order])
    np.testing.assert_array_equal(found, places)
    assert has_cases(spec)
    back = operator(
        "MoeTokenUnpermuteWithRoutingMap",
        "permuted_tokens sorted_indices:int32 routing_map?:bool probs?",
        "y a:int32 b:int32 p",
        "drop_and_pad:bool=false restore_shape:list_int=[]",
    )
    attrs = {"drop_and_pad": False, "restore_shape": [3, 4]}
    merged, *_ = _given(back, rows, np.array(places), routing, chances, **attrs)
    expected = np.zeros((3, 4))
    for row, (expert, token) in zip(rows, order, strict=True):
        expected[token] += chances[token, expert] * row
    np.testing.assert_allclose(merged, expected)
    assert has_cases(back)
    to_tokens = operator(
        "MoeTokenPermuteWithRoutingMapGrad",
        "of_rows of_chances? sorted_indices:int32 routing_map_optional?:bool",
        "y p",
        "num_experts:int tokens_num:int padded_mode:bool=false",
    )
    attrs = {"num_experts": 3, "tokens_num": 3, "padded_mode": False}
    summed, spread = _given(to_tokens, rows, of_rows, np.array(places), routing, **attrs)
    expected, expected_chances = np.zeros((3, 4)), np.zeros((3, 3))
    for at, (expert, token) in enumerate(order):
        expected[token] += rows[at]
        expected_chances[token, expert] = of_rows[at]
    np.testing.assert_allclose(summed, expected)
    np.testing.assert_array_equal(spread, expected_chances)
    assert has_cases(to_tokens)


def test_the_gradients_of_merging_by_a_map_are_those_of_its_sum() -> None:
    rows, by, chances = _normal((6, 4), (3, 4), (3, 3))
    routing = np.zeros((3, 3), bool)
    np.put_along_axis(routing, EXPERTS, True, axis=1)
    order = [(expert, token) for expert, token in np.ndindex(3, 3) if routing[token, expert]]
    places = [at for t in range(3) for at, (_, token) in enumerate(order) if token == t]
    spec = operator(
        "MoeTokenUnpermuteWithRoutingMapGrad",
        "unpermuted_tokens_grad out_index:int32 permute_token_id:int32 routing_map?:bool"
        " permuted_tokens? probs?",
        "a b",
        "drop_and_pad:bool=false restore_shape:list_int=[]",
    )
    attrs = {"drop_and_pad": False, "restore_shape": [3, 4]}
    ids = np.repeat(np.arange(3), 2)
    to_rows, to_chances = _given(spec, by, np.array(places), ids, routing, rows, chances, **attrs)
    for at, (expert, token) in enumerate(order):
        np.testing.assert_allclose(to_rows[at], by[token] * chances[token, expert])
        np.testing.assert_allclose(to_chances[token, expert], by[token] @ rows[at])
    assert has_cases(spec)


def test_the_gradients_of_merging_are_those_of_its_sum() -> None:
    rows, by, chances = _normal((6, 4), (3, 4), (3, 2))
    spec = operator(
        "MoeTokenUnpermuteGrad",
        "permuted_tokens unpermuted_tokens_grad sorted_indices:int32 probs?",
        "a b",
        "padded_mode:bool=false restore_shape:list_int=[1,1]",
    )
    attrs = {"padded_mode": False, "restore_shape": [1, 1]}
    to_rows, to_chances = _given(spec, rows, by, np.array(PLACES), chances, **attrs)
    for token, k in np.ndindex(3, 2):
        place = PLACES[2 * token + k]
        np.testing.assert_allclose(to_rows[place], by[token] * chances[token, k])
        np.testing.assert_allclose(to_chances[token, k], by[token] @ rows[place])
    assert has_cases(spec)


def test_routing_by_row_numbers_takes_them_along() -> None:
    (tokens,) = _normal((3, 4))
    numbers = np.array([[0, 3], [1, 4], [2, 5]])
    spec = operator(
        "MoeInitRouting", "x row_idx:int32 expert_idx:int32", "y at:int32 e:int32", "active_num:int"
    )
    routed, places, experts = _given(spec, tokens, numbers, EXPERTS, active_num=3)
    source = numbers.flatten()[ORDER]
    np.testing.assert_array_equal(routed, tokens[source % 3])
    np.testing.assert_array_equal(places[source], np.arange(6))
    np.testing.assert_array_equal(experts, [0, 0, 1, 1, 2, 2])
    assert has_cases(spec)


def test_results_of_experts_are_merged_by_columns() -> None:
    rows, one, two, biases, scales = _normal((6, 4), (3, 4), (3, 4), (3, 4), (3, 2))
    spec = operator(
        "MoeFinalizeRouting",
        "expanded_x x1 x2? bias scales expanded_row_idx:int32 expanded_expert_idx:int32",
    )
    (merged,) = _given(spec, rows, one, two, biases, scales, np.array(PLACES), EXPERTS)
    for token in range(3):
        expected = one[token] + two[token]
        for k in range(2):
            row = rows[PLACES[token + 3 * k]] + biases[EXPERTS[token, k]]
            expected = expected + scales[token, k] * row
        np.testing.assert_allclose(merged[token], expected)
    assert has_cases(spec)


def test_gating_takes_the_largest_chances() -> None:
    x = np.array([[0.0, 2, 1], [3, 0, 1]])
    spec = operator("MoeGatingTopKSoftmax", "x finished?:bool", "y e:int32 r:int32", "k:int")
    values, experts, numbers = _given(spec, x, np.array([False, True]), k=2)
    chances = np.exp(x) / np.exp(x).sum(1, keepdims=True)
    np.testing.assert_allclose(values, [chances[0, [1, 2]], chances[1, [0, 2]]])
    np.testing.assert_array_equal(experts, [[1, 2], [3, 3]])
    np.testing.assert_array_equal(numbers, [[0, 2], [1, 3]])
    assert has_cases(spec)


@pytest.mark.parametrize("mode", range(4))
def test_pairs_are_turned_by_angles(mode: int) -> None:
    """Of angles that both elements of a pair share it is a rotation of the pair."""
    (x,) = _normal((2, 3, 1, 8))
    angle = np.linspace(0.1, 1.3, 4)
    pairs = {
        0: [(i, i + 4) for i in range(4)],
        1: [(2 * i, 2 * i + 1) for i in range(4)],
        2: [(0, 2), (1, 3), (4, 6), (5, 7)],
        3: [(2 * i, 2 * i + 1) for i in range(4)],
    }[mode]
    put = [(i, i + 4) for i in range(4)] if mode == 3 else pairs
    angles, expected = np.zeros(8), np.zeros_like(x)
    for turn, (a, b), (to_a, to_b) in zip(angle, pairs, put, strict=True):
        angles[[to_a, to_b]] = turn
        expected[..., to_a] = x[..., a] * np.cos(turn) - x[..., b] * np.sin(turn)
        expected[..., to_b] = x[..., b] * np.cos(turn) + x[..., a] * np.sin(turn)
    spec = operator("RotaryPositionEmbedding", "x cos sin", "y", "mode:int=0")
    (turned,) = _given(spec, x, np.cos(angles), np.sin(angles), mode=mode)
    np.testing.assert_allclose(turned, expected)
    assert has_cases(spec)


def test_attention_by_heads_that_share_keys() -> None:
    torch = pytest.importorskip("torch")
    query, key, value = _normal((2, 5, 4 * 8), (2, 6, 2 * 8), (2, 6, 2 * 8))
    spec = operator(
        "PromptFlashAttention",
        "query key value",
        "y",
        "num_heads:int=1 scale_value:float=1.0 pre_tokens:int=9 next_tokens:int=0"
        ' input_layout:string="BSH" num_key_value_heads:int=0'
        " sparse_mode:int=0 inner_precise:int=1",
    )
    attrs = {"num_heads": 4, "num_key_value_heads": 2, "scale_value": 0.25, "input_layout": "BSH"}
    attrs |= {"sparse_mode": 0, "pre_tokens": 9, "next_tokens": 0, "inner_precise": 1}
    (found,) = _given(spec, query, key, value, **attrs)
    heads = [
        torch.from_numpy(x).unflatten(-1, (n, 8)).transpose(1, 2)
        for x, n in ((query, 4), (key, 2), (value, 2))
    ]
    expected = torch.nn.functional.scaled_dot_product_attention(*heads, scale=0.25, enable_gqa=True)
    np.testing.assert_allclose(found, expected.transpose(1, 2).flatten(2), atol=1e-12)
    assert has_cases(spec)


@pytest.mark.parametrize("in_halves", [True, False])
def test_positions_turn_the_first_columns_of_each_head(in_halves: bool) -> None:
    query, key, cache = _normal((3, 2 * 8), (3, 8), (5, 4))
    spec = operator(
        "RopeWithSinCosCache",
        "positions:int64 queryIn keyIn cosSinCache",
        "queryOut keyOut",
        "numQHeads:int=1 numKHeads:int=1 headSize:int=1 mropeSection:list_int=[0,0,0]"
        " qStride:int=0 kStride:int=0 isNeoxStyle:bool=true",
    )
    positions = np.array([4, 0, 2])
    attrs = {"numQHeads": 2, "numKHeads": 1, "headSize": 8, "mropeSection": [0, 0, 0]}
    attrs |= {"qStride": 0, "kStride": 0, "isNeoxStyle": in_halves}
    found, _ = _given(spec, positions, query, key, cache, **attrs)
    expected = query.reshape(3, 2, 8).copy()
    for token, position in enumerate(positions):
        cos, sin = cache[position, :2], cache[position, 2:]
        for head in expected[token]:
            one, two = (slice(0, 2), slice(2, 4)) if in_halves else (slice(0, 4, 2), slice(1, 4, 2))
            first, second = head[one].copy(), head[two].copy()
            head[one], head[two] = first * cos - second * sin, second * cos + first * sin
    np.testing.assert_allclose(found, expected.reshape(3, 16))
    assert has_cases(spec)
