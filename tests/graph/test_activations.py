"""Activations that torch would take apart stay whole in compiled graphs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")
from torch.nn import functional as F  # noqa: E402

from opkit.graph.backend import opkit, watching  # noqa: E402

pytestmark = pytest.mark.torch


@pytest.mark.parametrize(
    "function",
    [F.mish, lambda x: F.softplus(x, 2.0, 5.0), F.gelu],
    ids=["mish", "softplus", "gelu"],
)
def test_activations_and_their_gradients_keep_their_own_formula(
    function: Callable[..., Any],
) -> None:
    # A mish was torch's parts: log1p, exp and tanh one after another, 23 us for 1 Mi, not 12. The
    # gradient of a gelu of no named kind was left to torch.
    given = torch.cat([torch.randn(500) * 4, torch.tensor([-100.0, -20.0, 0.0, 20.0, 100.0])])
    mine, other = given.clone().requires_grad_(), given.clone().requires_grad_()
    with watching() as graphs:
        found = torch.compile(function, backend=opkit, dynamic=False)(mine)
        found.sum().backward()
    expected = function(other)
    expected.sum().backward()
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(mine.grad, other.grad, rtol=1e-5, atol=1e-5)
    assert not [left for graph in graphs for left in graph.left if not left.is_view]
    taken = [str(node.target) for graph in graphs for part in graph.sources for node in part]
    assert "aten.log1p.default" not in taken
    assert "aten.tanh.default" not in taken


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_short_polynomials_of_16_bits_are_off_by_one_step_at_most(dtype: Any) -> None:
    # All numbers that there are: tanh has 4 multiply-adds in place of 8, gelu 6 or 7 of 12.
    given = torch.arange(-(1 << 15), 1 << 15, dtype=torch.int32).to(torch.int16).view(dtype)
    given = given[given.isfinite()]

    def both(x: Any) -> Any:
        return torch.tanh(x), F.gelu(x)

    with watching() as graphs:
        found = torch.compile(both, backend=opkit, dynamic=False)(given)
    wide = given.double()
    # Of a normal distribution's tail: 1 + erf cancels.
    tail = torch.special.erfc(wide.abs() * 0.5**0.5) / 2
    expected = torch.tanh(wide), torch.clamp(wide, min=0) - wide.abs() * tail
    for mine, exact in zip(found, expected, strict=True):
        steps = [each.view(torch.int16).int() for each in (mine, exact.to(dtype))]
        # Bits in the order of the numbers, so that neighbours are one apart; both zeros are 0.
        ordered = [torch.where(each < 0, -(each & 0x7FFF), each) for each in steps]
        assert int((ordered[0] - ordered[1]).abs().max()) <= 1
    (text,) = (kernel.source for kernel in graphs[0].segments[0].plan.kernels)
    assert text.count("Adds(") + text.count("Muls(") <= 24
