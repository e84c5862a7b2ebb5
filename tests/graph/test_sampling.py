"""Images that are sampled at places which a grid names are one launch."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import torch.nn.functional as functional  # noqa: E402

from opkit.graph.backend import opkit, watching  # noqa: E402

pytestmark = pytest.mark.torch

CASES = [
    *itertools.product(
        [(2, 3, 7, 9)],
        ["bilinear", "nearest", "bicubic"],
        ["zeros", "border", "reflection"],
        [False, True],
    ),
    *itertools.product(
        [(1, 2, 4, 5, 6)], ["bilinear", "nearest"], ["zeros", "reflection"], [False, True]
    ),
    ((1, 2, 1, 5), "bilinear", "reflection", True),
    # A core does not hold an image: rows of channels are picked.
    ((2, 8, 200, 130), "bilinear", "zeros", False),
]


@pytest.mark.sampled(9)
@pytest.mark.parametrize(("shape", "mode", "padding", "aligned"), CASES)
def test_samples_are_torchs(shape: tuple[int, ...], mode: str, padding: str, aligned: bool) -> None:
    def sampled(x: Any, grid: Any) -> Any:
        return functional.grid_sample(
            x, grid, mode=mode, padding_mode=padding, align_corners=aligned
        )

    generator = torch.Generator().manual_seed(3)
    x = torch.randn(shape, generator=generator)
    grid = torch.rand(shape[0], *(5, 6, 4)[: len(shape) - 2], len(shape) - 2, generator=generator)
    grid = grid * 4 - 2
    with watching() as graphs, torch.no_grad():
        actual = torch.compile(sampled, backend=opkit)(x, grid)
    torch.testing.assert_close(actual, sampled(x, grid), rtol=1e-4, atol=2e-4)
    assert [left for graph in graphs for left in graph.left if not left.is_view] == []
    torch._dynamo.reset()


def test_halves_are_sampled_in_full() -> None:
    x, grid = torch.randn(1, 4, 6, 6).half(), torch.rand(1, 5, 5, 2).half() * 2 - 1

    def sampled(x: Any, grid: Any) -> Any:
        return functional.grid_sample(x, grid, align_corners=False)

    with torch.no_grad():
        actual = torch.compile(sampled, backend=opkit)(x, grid)
    expected = sampled(x.float(), grid.float())
    torch.testing.assert_close(actual.float(), expected, rtol=2e-3, atol=2e-3)
    torch._dynamo.reset()
