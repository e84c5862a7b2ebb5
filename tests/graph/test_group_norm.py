"""Group norm in compiled graphs: kernels of its own, with float32 inside."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")
from torch.nn import functional as F  # noqa: E402

from opkit.graph.backend import opkit, watching  # noqa: E402

pytestmark = pytest.mark.torch


def compiled(given: Any, groups: int, weight: Any, bias: Any) -> Any:
    """Return the result of a compiled group norm of which nothing was left to torch."""

    def function(*tensors: Any) -> Any:
        return F.group_norm(tensors[0], groups, *tensors[1:])

    with watching() as graphs:
        found = torch.compile(function, backend=opkit, dynamic=False)(given, weight, bias)
    # It was the device's own: five launches, of which three for statistics.
    assert [left for graph in graphs for left in graph.left if not left.is_view] == []
    return found


@pytest.mark.parametrize(
    ("dtype", "shape", "groups"),
    [
        (torch.float32, (3, 6, 5, 7), 3),
        (torch.float16, (5, 33), 1),
        (torch.bfloat16, (2, 6, 5), 1),
        (torch.float16, (5, 34), 2),
    ],
    ids=str,
)
def test_every_type_and_layout_is_torchs(dtype: Any, shape: tuple[int, ...], groups: int) -> None:
    # Far from zero: what is lost where squares are added up in a half type.
    given = (torch.randn(shape) * 3 + 40).to(dtype)
    weight, bias = torch.randn(shape[1]).to(dtype), torch.randn(shape[1]).to(dtype)
    found = compiled(given, groups, weight, bias)
    expected = F.group_norm(given.double(), groups, weight.double(), bias.double())
    limit = {torch.float32: 1e-4, torch.float16: 4e-3, torch.bfloat16: 3e-2}[dtype]
    torch.testing.assert_close(found.double(), expected, rtol=limit, atol=limit)


def test_no_weight_and_channels_last_are_taken_and_nan_stays_in_its_group() -> None:
    given = torch.randn(2, 4, 3, 5).to(memory_format=torch.channels_last)
    given[1, 3, 0, 0] = float("nan")
    found = compiled(given, 2, None, None)
    torch.testing.assert_close(found, F.group_norm(given, 2), equal_nan=True)
