"""Norms of whole tensors and of axes."""

from __future__ import annotations

import math
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from opkit.graph.backend import opkit, watching  # noqa: E402

pytestmark = pytest.mark.torch


@pytest.mark.parametrize(
    "orders", [(2.0, 1.0), (1.5, 3.0, 4.0), (0.0, math.inf, -math.inf), (-1.0, 2.0)]
)
def test_norms_of_lists_are_one_launch(orders: tuple[float, ...]) -> None:
    def norms(tensors: Any) -> Any:
        wide = [each.float() for each in tensors]
        return [torch.norm(each, p=order).half() for order in orders for each in wide]

    given = [torch.randn(40, 33).half(), torch.randn(7).half() * 30, torch.zeros(3).half()]
    with watching() as graphs:
        found = torch.compile(norms, backend=opkit, dynamic=False)(given)
    exact = [torch.norm(each.double(), p=order).half() for order in orders for each in given]
    torch.testing.assert_close(found, exact, rtol=1e-3, atol=1e-3)
    (segment,) = graphs[0].segments
    assert len(segment.plan.launches) == 1 and not graphs[0].left


def test_norms_of_axes_keep_their_digits() -> None:
    def norms(x: Any) -> Any:
        by_row = torch.linalg.vector_norm(x, ord=3, dim=1)
        return by_row, torch.linalg.vector_norm(x, dim=(0, 1), keepdim=True)

    x = torch.randn(37, 50)
    found = torch.compile(norms, backend=opkit, dynamic=False)(x)
    for mine, exact in zip(found, norms(x.double()), strict=True):
        torch.testing.assert_close(mine.double(), exact, rtol=4e-7, atol=0)
