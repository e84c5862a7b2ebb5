"""What comes together along an axis, and axes turned round, have kernels in graphs."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from opkit.graph.backend import opkit, watching  # noqa: E402

pytestmark = pytest.mark.torch

X = torch.randn(5, 37, generator=torch.Generator().manual_seed(3))
# Equal elements, and what is no number.
EQUAL = (X * 2).round()
HOLES = torch.where(X > 1.5, math.nan, X)
ENDLESS = torch.where(X < -0.5, -math.inf, X * 30)
CASES: dict[str, tuple[Callable[..., Any], Any]] = {
    "logcumsumexp": (lambda x: torch.logcumsumexp(x, 1), ENDLESS),
    "logcumsumexp of halves": (lambda x: torch.logcumsumexp(x, 0), X.half()),
    "cummax": (lambda x: torch.cummax(x, 0), EQUAL.T.contiguous()),
    "cummax of what is no number": (lambda x: torch.cummax(x, 0), HOLES.T.contiguous()),
    "cummin": (lambda x: torch.cummin(x, 0), EQUAL),
    "flip": (lambda x: x.flip(0, -1), X),
    "flip of whole numbers": (lambda x: x.flip(1), EQUAL.to(torch.int8)),
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", CASES)
def test_results_are_torchs_and_nothing_is_left(name: str) -> None:
    function, x = CASES[name]
    torch._dynamo.reset()
    with watching() as graphs, torch.no_grad():
        actual = torch.compile(function, backend=opkit)(x)
    torch.testing.assert_close(actual, function(x), equal_nan=True, rtol=1e-4, atol=1e-4)
    assert [left for graph in graphs for left in graph.left if not left.is_view] == []
