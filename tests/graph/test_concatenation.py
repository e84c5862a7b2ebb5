"""Joined tensors of which some are negated: the signs go to what reads the result."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from opkit.graph.backend import opkit, watching  # noqa: E402

pytestmark = pytest.mark.torch


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16], ids=str)
def test_a_rotation_of_halves_is_cut_and_joined_by_one_kernel(dtype: Any) -> None:
    # Slices, a negation and a concatenation were three launches of a rotary embedding.
    def rotate(x: Any, factor: Any) -> Any:
        left, right = x[..., :24], x[..., 24:]
        return x * factor + torch.cat([-right, left], dim=-1) * 2.0

    x, factor = torch.randn(3, 5, 48).to(dtype), torch.randn(48).to(dtype)
    x[0, 0, 30], x[1, 2, 3], x[2, 2, 40] = 0.0, float("inf"), float("nan")
    with watching() as graphs:
        found = torch.compile(rotate, backend=opkit, dynamic=False)(x, factor)
    limit = {torch.float32: 1e-6, torch.float16: 4e-3, torch.bfloat16: 3e-2}[dtype]
    torch.testing.assert_close(found, rotate(x, factor), rtol=limit, atol=limit, equal_nan=True)
    (graph,) = graphs
    assert graph.left == [left for left in graph.left if left.is_view]
    assert len(graph.segments) == 1


def test_negated_parts_along_any_axis_and_of_whole_numbers_are_torchs() -> None:
    def joined(x: Any, y: Any, whole: Any) -> Any:
        negated = -x
        return (
            torch.cat([negated, y, -y], dim=1),
            torch.cat([x, negated], dim=0),
            torch.cat([-whole, whole], dim=-1),
            negated * 3.0,
        )

    given = (torch.randn(2, 3, 5), torch.randn(2, 4, 5), torch.arange(-6, 6, dtype=torch.int32))
    found = torch.compile(joined, backend=opkit, dynamic=False)(*given)
    for mine, other in zip(found, joined(*given), strict=True):
        torch.testing.assert_close(mine, other, rtol=0, atol=0)
    # The sign of zero is kept.
    zero = torch.zeros(1, 2, 4)
    (first, *_) = torch.compile(joined, backend=opkit, dynamic=False)(zero, zero, given[2])
    assert torch.signbit(first).equal(torch.signbit(joined(zero, zero, given[2])[0]))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16], ids=str)
def test_a_rotation_of_neighbours_is_one_kernel_that_gathers(dtype: Any) -> None:
    def rotate(x: Any, factor: Any) -> Any:
        turned = torch.stack((-x[..., 1::2], x[..., ::2]), dim=-1).flatten(-2)
        return x * factor + turned * 2.0

    x, factor = torch.randn(3, 5, 48).to(dtype), torch.randn(48).to(dtype)
    with watching() as graphs:
        found = torch.compile(rotate, backend=opkit, dynamic=False)(x, factor)
    limit = {torch.float32: 1e-6, torch.float16: 4e-3}[dtype]
    torch.testing.assert_close(found, rotate(x, factor), rtol=limit, atol=limit)
    (segment,) = graphs[0].segments
    assert any("Gather(" in kernel.source for kernel in segment.plan.kernels)
    assert len(segment.plan.launches) == 1


@pytest.mark.parametrize("dtype", [torch.float32, torch.int32, torch.bool], ids=str)
@pytest.mark.parametrize(
    "at", [slice(0, None, 2), slice(2, None, 3), slice(4, 12, 4), slice(3, 4, 2), slice(1, -1, 2)]
)
def test_parts_with_gaps_are_replaced(at: slice, dtype: Any) -> None:
    def replaced(x: Any, y: Any) -> Any:
        wide, high = x.clone(), x.clone()
        wide[:, at], high[at] = y[:, at], y[at]
        return wide, high

    x, y = (torch.randn(34, 17) * 5).to(dtype), (torch.randn(34, 17) * 5).to(dtype)
    with watching() as graphs:
        found = torch.compile(replaced, backend=opkit, dynamic=False)(x, y)
    for mine, expected in zip(found, replaced(x, y), strict=True):
        assert torch.equal(mine, expected)
    assert not [left for left in graphs[0].left if not left.is_view]
