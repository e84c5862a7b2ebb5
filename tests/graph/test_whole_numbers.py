"""Places, masks and whole numbers of 64 bits in compiled graphs, against torch itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from opkit.graph.aten import INPUT, Bound, Refused, bound_of, largest_limit  # noqa: E402
from opkit.graph.backend import opkit, watching  # noqa: E402


def _compare(model: Callable[..., Any], *inputs: Any) -> None:
    """Compare a function's results with torch's; torch may run none of its nodes."""
    compiled = torch.compile(model, backend=opkit)
    with watching() as graphs, torch.no_grad():
        found = compiled(*inputs)
    torch.testing.assert_close(found, model(*inputs), rtol=1e-5, atol=1e-5)
    assert [left for graph in graphs for left in graph.left if not left.is_view] == []


@pytest.mark.slow
def test_positions_from_a_mask_of_tokens_are_computed_in_32_bits_and_given_in_64() -> None:
    tokens = torch.tensor([[5, 7, 1, 1], [9, 4, 3, 1]])

    def model(tokens: Any) -> Any:
        mask = tokens.ne(1).int()
        return (torch.cumsum(mask, 1).type_as(mask) * mask).long() + 1

    _compare(model, tokens)


def test_a_narrower_type_keeps_the_lowest_bits() -> None:
    def model(x: Any) -> Any:
        return x.to(torch.int8) + 0, x.to(torch.uint8) + 0, x.to(torch.int8).to(torch.uint8) + 0

    _compare(model, torch.tensor([300, -300, 50, -1, 127, 128], dtype=torch.int32))


def test_whole_numbers_divide_exactly() -> None:
    def model(x: Any, y: Any) -> Any:
        return (
            torch.div(x, y, rounding_mode="floor"),
            torch.div(x, y, rounding_mode="trunc"),
            torch.remainder(x, y),
            torch.fmod(x, y),
            x // 7,
        )

    numbers = [123456789, -123456789, 16777217, -16777217, 2**31 - 1, -(2**31), 5, -5]
    divisors = [7, 7, 3, -3, 10, 10, -7, 7]
    _compare(model, *(torch.tensor(n, dtype=torch.int32) for n in (numbers, divisors)))


def test_numbers_that_32_bits_do_not_hold_are_torchs() -> None:
    compiled = torch.compile(lambda x: x * 1000 + 1, backend=opkit)
    with watching() as graphs, torch.no_grad():
        for large in (3, -(1 << 20), 1 << 22, -(1 << 40)):
            x = torch.tensor([large, 5])
            torch.testing.assert_close(compiled(x), x * 1000 + 1)
    assert graphs[0].left == []


def test_a_node_that_could_leave_32_bits_among_others_is_left_alone() -> None:
    def model(x: Any) -> Any:
        return x.int().long() + 1, x * 2

    x = torch.tensor([1.5, 2147480000.0])
    with watching() as graphs, torch.no_grad():
        found = torch.compile(model, backend=opkit)(x)
    torch.testing.assert_close(found, model(x))
    (left,) = graphs[0].left
    assert left.operator == "aten._to_copy.default" and "64 bits" in left.reason


def test_bounds_say_how_large_inputs_may_be() -> None:
    bound = bound_of("aten.mul.Tensor", (INPUT, 1000), {}, [], [])
    assert bound == Bound(1000, 0)
    assert largest_limit([bound, bound + Bound(0, 7)]) == ((1 << 31) - 8) // 1000
    with pytest.raises(Refused, match="64 bits"):
        largest_limit([Bound(0, 1 << 40)])
    with pytest.raises(Refused, match="fractions"):
        bound_of("aten.add.Tensor", (INPUT, 0.5), {}, [], [])
    with pytest.raises(Refused, match="product"):
        bound_of("aten.mul.Tensor", (INPUT, INPUT), {}, [], [])


@pytest.mark.slow
def test_order_and_extremes_come_with_their_places() -> None:
    def model(x: Any) -> Any:
        return (*x.sort(1, True), *x.topk(3), x.argmax(), x.argmin(0), *x.max(1))

    _compare(model, torch.randperm(40).reshape(4, 10).float())


@pytest.mark.slow
def test_elements_are_picked_and_put_at_places() -> None:
    def model(x: Any, places: Any, rows: Any) -> Any:
        return (
            x.gather(1, places),
            x.scatter(1, places, -x[:3, :4]),
            x.scatter_add(1, places, x[:3, :4]),
            x[rows],
            x[:, rows],
            x[rows, rows + 2],
            x.index_put((rows,), torch.ones(3, 6)),
        )

    places = torch.stack([torch.randperm(6)[:4] for _ in range(3)])
    _compare(model, torch.randn(4, 6), places, torch.tensor([2, 0, -1]))


@pytest.mark.slow
def test_gradients_of_a_table_are_added_up_by_kernels() -> None:
    table = torch.nn.Embedding(10, 16, padding_idx=3)
    tokens = torch.tensor([[1, 3, 1], [9, 1, 3]])
    gradients = []
    for function in (torch.compile(lambda i: table(i) * 2, backend=opkit), lambda i: table(i) * 2):
        table.zero_grad()
        with watching() as graphs:
            function(tokens).square().sum().backward()
        gradients.append(table.weight.grad.clone())
        assert [left for graph in graphs for left in graph.left if not left.is_view] == []
    torch.testing.assert_close(gradients[0], gradients[1], rtol=1e-4, atol=1e-4)


def test_any_and_all_of_truths_are_kernels() -> None:
    _compare(lambda x: ((x > 1).any(1), (x > -1).all(0)), torch.randn(4, 6))


def test_nothing_to_join_is_left_out() -> None:
    def model(x: Any) -> Any:
        return torch.cat([torch.tensor([]), x * 2], 0)

    _compare(model, torch.randn(4, 6))
