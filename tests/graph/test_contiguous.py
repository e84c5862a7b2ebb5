"""Parts that lie in one piece are read where they lie; what is put together again is put together
once."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from opkit.graph.backend import opkit, watching  # noqa: E402
from opkit.sanitizer import Check  # noqa: E402

pytestmark = pytest.mark.torch


def _run(function: Any, *given: Any) -> list[tuple[str, ...]]:
    """Compile and run a function under every check, compare, and return its launches' operators."""
    with watching() as graphs, Check(()) as checks, torch.no_grad():
        found = torch.compile(function, backend=opkit, dynamic=False)(*given)
    assert not checks.findings, checks.findings[0]
    assert [left for graph in graphs for left in graph.left if not left.is_view] == []
    tensors = (each.double() if each.is_floating_point() else each for each in given)
    torch.testing.assert_close(found.double(), function(*tensors), rtol=2e-3, atol=2e-3)
    plans = [segment.plan for graph in graphs for segment in graph.segments]
    return [plan.kernels[launch.kernel].operators for plan in plans for launch in plan.launches]


def _grouped(x: Any, weight: Any, bias: Any) -> Any:
    """Rows in groups of 16, each by a matrix of its own, written into one result."""
    y = torch.zeros(x.shape[0], weight.shape[1], dtype=x.dtype, device=x.device)
    wide = x.float() if x.dtype != torch.float64 else x
    for at in range(weight.shape[0]):
        matrix, row = weight[at].to(wide.dtype), bias[at].to(wide.dtype)
        rows = slice(16 * at, 16 * at + 16)
        y[rows] = (torch.matmul(wide[rows], matrix.T) + row).to(x.dtype)
    return y


def test_grouped_products_read_their_operands_where_they_lie() -> None:
    # Copies into a part of a tensor were torch's, and each group a program of its own.
    x, weight, bias = (torch.randn(s).half() for s in ((48, 32), (3, 24, 32), (3, 24)))
    launches = _run(_grouped, x, weight, bias)
    # Matrices of 16 bits are multiplied as they are, and no operand is cut out.
    assert [each for each in launches if "slice" in each] == []
    assert sum("concat" in each for each in launches) == 1
    assert not any(each[0] == "cast" and "matmul" in each for each in launches)


def test_what_begins_between_blocks_of_32_bytes_is_moved() -> None:
    def product(x: Any, w: Any) -> Any:
        return torch.matmul(x.reshape(-1)[3:67].reshape(8, 8), w)

    launches = _run(product, torch.randn(10, 8).half(), torch.randn(8, 8).half())
    assert any("slice" in each for each in launches)


def test_a_part_that_is_returned_has_memory_of_its_own() -> None:
    def parts(x: Any) -> Any:
        return (x * 2)[16:32].clone()

    _run(parts, torch.randn(48, 32).half())


def test_slices_of_what_was_joined_are_parts() -> None:
    def joined(a: Any, b: Any) -> Any:
        whole = torch.cat([torch.cat([a, b]), a])
        return torch.relu(whole[8:40])

    a, b = torch.randn(24, 16), torch.randn(16, 16)
    _run(joined, a, b)
