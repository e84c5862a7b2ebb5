"""Elements that torch joins at places are kernels."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from opkit.graph.backend import opkit, watching  # noqa: E402

pytestmark = pytest.mark.torch


def compiled(function: Any, *given: Any) -> Any:
    """Return what a function gives, nothing of which is left to torch."""
    torch._dynamo.reset()
    with watching() as graphs, torch.no_grad():
        found = torch.compile(function, backend=opkit)(*given)
    assert [left for graph in graphs for left in graph.left if not left.is_view] == []
    return found


def given(dtype: Any, shape: tuple[int, ...], dim: int, count: int) -> tuple[Any, ...]:
    picked = (*shape[:dim], count, *shape[dim + 1 :])
    generator = torch.Generator().manual_seed(2)
    x, source = (torch.randint(-4, 5, s, generator=generator).to(dtype) for s in (shape, picked))
    return x, torch.randint(0, shape[dim], picked, generator=generator), source


@pytest.mark.sampled(6)
@pytest.mark.parametrize("has_own", [True, False])
@pytest.mark.parametrize("reduce", ["sum", "prod", "mean", "amax", "amin"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.int32, torch.int8])
def test_elements_are_reduced_at_their_places(dtype: Any, reduce: str, has_own: bool) -> None:
    if reduce == "mean" and not dtype.is_floating_point:
        pytest.skip("left to torch")
    x, index, source = given(dtype, (6, 9), 1, 14)

    def reduced(x: Any, index: Any, source: Any) -> Any:
        return x.scatter_reduce(1, index, source, reduce, include_self=has_own)

    actual = compiled(reduced, x, index, source)
    torch.testing.assert_close(actual, reduced(x, index, source), rtol=2e-3, atol=2e-3)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("reduce", ["prod", "mean", "amax", "amin"])
def test_rows_are_reduced_at_their_places(reduce: str) -> None:
    x, _, source = given(torch.float32, (9, 40), 0, 14)
    index = torch.randint(0, 9, (14,))

    def reduced(x: Any, index: Any, source: Any) -> Any:
        return x.index_reduce(0, index, source, reduce, include_self=False)

    actual = compiled(reduced, x, index, source)
    torch.testing.assert_close(actual, reduced(x, index, source))


def test_numbers_are_multiplied_at_places() -> None:
    x, index, _ = given(torch.float32, (9, 8), 0, 5)
    actual = compiled(lambda x, index: x.scatter(0, index, 3.0, reduce="multiply"), x, index)
    torch.testing.assert_close(actual, x.scatter(0, index, 3.0, reduce="multiply"))
