"""Edges, histograms, bags of rows and the k-th of lines have kernels in graphs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import torch.nn.functional as functional  # noqa: E402

from opkit.graph.backend import opkit, watching  # noqa: E402

pytestmark = pytest.mark.torch


def bags(mode: str, **given: Any) -> Callable[..., Any]:
    def found(weight: Any, indices: Any, offsets: Any, each: Any = None) -> Any:
        return functional.embedding_bag(
            indices, weight, offsets, mode=mode, per_sample_weights=each, **given
        )

    return found


TABLE = torch.randn(20, 12, generator=torch.Generator().manual_seed(1))
ROWS = torch.randint(0, 20, (30,), generator=torch.Generator().manual_seed(2))
# The second bag has no rows.
BEGINS = torch.tensor([0, 7, 7, 20])
NUMBERS = torch.randn(6, 50, generator=torch.Generator().manual_seed(3))
EDGES = torch.linspace(-1, 1, 9)
CASES: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "searchsorted": (lambda e, x: torch.searchsorted(e, x, right=True), (EDGES, NUMBERS)),
    "searchsorted of lines": (
        lambda e, x: torch.searchsorted(e, x, side="left", out_int32=True),
        (NUMBERS.sort(1)[0][:, :9].contiguous(), NUMBERS),
    ),
    "bucketize": (lambda e, x: torch.bucketize(x, e), (EDGES, NUMBERS.half())),
    "histc": (lambda x: torch.histc(x, 37, -1.1, 2.3), (NUMBERS,)),
    "histc of all": (lambda x: torch.histc(x, 8), (NUMBERS.round(),)),
    "histc of many bins": (lambda x: torch.histc(x, 600, -2, 2), (NUMBERS.round(decimals=1),)),
    "kthvalue": (lambda x: torch.kthvalue(x, 4, 1), (NUMBERS,)),
    "kthvalue from the end": (lambda x: torch.kthvalue(x, 5, 0, True), (NUMBERS,)),
    "bags": (bags("sum"), (TABLE, ROWS, BEGINS)),
    "bags of shares": (bags("sum"), (TABLE, ROWS, BEGINS, NUMBERS[0, :30].contiguous())),
    "means of bags": (bags("mean", padding_idx=3), (TABLE, ROWS, BEGINS)),
    "extremes of bags": (bags("max", padding_idx=3), (TABLE, ROWS, BEGINS)),
    "bags with an end": (
        bags("mean", include_last_offset=True),
        (TABLE, ROWS, torch.tensor([0, 7, 7, 20, 30])),
    ),
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", CASES)
def test_results_are_torchs_and_nothing_is_left(name: str) -> None:
    function, given = CASES[name]
    torch._dynamo.reset()
    with watching() as graphs, torch.no_grad():
        actual = torch.compile(function, backend=opkit)(*given)
    torch.testing.assert_close(actual, function(*given))
    assert [left for graph in graphs for left in graph.left if not left.is_view] == []


def test_a_number_at_the_edge_of_a_bin_is_counted_as_torch_rounds() -> None:
    x = torch.cat(
        [torch.linspace(-3, 3, 101), torch.nextafter(torch.linspace(-3, 3, 101), EDGES[0])]
    )
    torch._dynamo.reset()
    with torch.no_grad():
        actual = torch.compile(lambda x: torch.histc(x, 100, -3, 3), backend=opkit)(x)
    torch.testing.assert_close(actual, torch.histc(x, 100, -3, 3))
