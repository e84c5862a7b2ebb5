"""Slices and concatenations are places that vector kernels read and write."""

from __future__ import annotations

import random
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from opkit.graph.backend import opkit, watching  # noqa: E402
from opkit.sanitizer import Check  # noqa: E402

pytestmark = pytest.mark.torch

_LIMITS = {torch.float32: 1e-5, torch.float16: 4e-3, torch.bfloat16: 3e-2}
_MOVES = {"slice", "concat", "concat_slices"}


def _run(function: Any, *given: Any) -> set[str]:
    """Compile and run a function under every check, compare, and return its kernels' operators."""
    with watching() as graphs, Check(()) as checks, torch.no_grad():
        found = torch.compile(function, backend=opkit, dynamic=False)(*given)
    assert not checks.findings, checks.findings[0]
    assert [left for graph in graphs for left in graph.left if not left.is_view] == []
    expected = function(*given)
    for mine, other in zip(_listed(found), _listed(expected), strict=True):
        limit = _LIMITS.get(other.dtype, 0.0)
        torch.testing.assert_close(mine, other, rtol=limit, atol=limit)
    kernels = [kernel for graph in graphs for s in graph.segments for kernel in s.plan.kernels]
    return {operator for kernel in kernels for operator in kernel.operators}


def _listed(value: Any) -> list[Any]:
    return list(value) if isinstance(value, tuple | list) else [value]


@pytest.mark.parametrize(
    ("shape", "dtype"),
    [
        ((64, 2 * 119), torch.float16),
        ((3, 5, 2 * 48), torch.float32),
        ((2 * 17, 33), torch.bfloat16),
        ((1, 9000), torch.float16),
    ],
    ids=str,
)
def test_halves_of_a_gate_are_read_where_they_lie(shape: tuple[int, ...], dtype: Any) -> None:
    # A cast, two slices and the product were four kernels.
    def gate(x: Any) -> Any:
        dim = -1 if shape[-1] % 2 == 0 else 0
        left, right = x.float().chunk(2, dim=dim)
        return (torch.nn.functional.silu(left) * right).to(dtype)

    assert not _run(gate, torch.randn(shape).to(dtype)) & _MOVES


@pytest.mark.parametrize(
    ("heads", "dtype"),
    [((5, 3), torch.float16), ((1, 2), torch.float32), ((40, 7), torch.bfloat16)],
    ids=str,
)
def test_a_rotation_of_heads_is_two_kernels(heads: tuple[int, int], dtype: Any) -> None:
    def rotate(q: Any, k: Any, angle: Any) -> Any:
        wide = torch.cat([angle, angle], -1)[None, :, None, :].float()
        cosine, sine = wide.cos(), wide.sin()

        def turned(x: Any) -> Any:
            x = x.float()
            half = x.shape[-1] // 2
            other = torch.cat([-x[..., half:], x[..., :half]], dim=-1)
            return (x * cosine + other * sine).to(dtype)

        return turned(q), turned(k)

    q, k = (torch.randn(2, 31, count, 64).to(dtype) for count in heads)
    assert not _run(rotate, q, k, torch.randn(31, 32)) & _MOVES


def test_what_is_computed_is_put_together_where_it_is_written() -> None:
    def together(x: Any, y: Any) -> Any:
        joined = torch.cat([torch.relu(x), y * 2, x[:, 5:25] + 1], dim=1)
        stacked = torch.cat([x.exp(), x - 1, x[:3] * 2], dim=0)
        return joined, stacked, joined.sum(dim=1), stacked.amax(dim=0)

    assert not _run(together, torch.randn(33, 30), torch.randn(33, 17)) & _MOVES


def test_rows_of_parts_reduce_along_either_axis() -> None:
    def reduced(x: Any) -> Any:
        part = x[:, 3:35]
        return torch.softmax(part, -1) + x[:, 40:72], part.sum(0), x[7:9].mean(-1), x[:, 64].exp()

    _run(reduced, torch.randn(33, 80))


def test_parts_that_are_results_or_read_by_products_stay_kernels() -> None:
    def mixed(x: Any, weight: Any) -> Any:
        left, right = x.chunk(2, dim=1)
        return left, torch.cat([right, left * 2], dim=1) @ weight, right.exp(), x[:, 4:6] * 2

    operators = _run(mixed, torch.randn(16, 64), torch.randn(64, 16))
    assert "slice" in operators


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8))
def test_random_cuts_and_joins_are_torchs(seed: int) -> None:
    draw = random.Random(seed)
    shape = [draw.choice([2, 3, 17, 40]), draw.choice([1, 5, 24]), draw.choice([32, 48, 77])]
    dtype = draw.choice(list(_LIMITS))
    steps = [
        (draw.choice("cjert"), draw.randrange(3), draw.random(), draw.random()) for _ in range(6)
    ]

    def program(x: Any, row: Any) -> Any:
        values = [x]
        for kind, dim, place, size in steps:
            value = values[int(place * len(values))]
            extent = value.shape[dim]
            at = int(size * extent)
            if kind == "c":
                values.append(value.narrow(dim, at // 2, max(1, extent - at)) * 1.5)
            elif kind == "j":
                values.append(torch.cat([value.tanh(), value.narrow(dim, at, extent - at)], dim))
            elif kind == "e":
                values.append(value.float().mul(0.5).add(row.float()[: value.shape[1]]).to(dtype))
            elif kind == "r":
                values.append(value + value.float().mean(dim, keepdim=True).to(dtype))
            else:
                values.append(torch.cat([value, value], dim).narrow(dim, at, extent) - 1)
        return tuple(values[1:])

    _run(program, torch.randn(shape).to(dtype), torch.randn(shape[1], 1).to(dtype))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.int64, torch.bool], ids=str)
def test_rows_and_then_their_elements_are_picked(dtype: Any) -> None:
    def picked(x: Any, rows: Any, columns: Any) -> Any:
        return (
            x[:, rows[:, None], columns],
            x[:, rows[None], columns[:, None]],
            x[:, rows, columns[:3]],
            x[(rows % 2)[:, None, None], rows[:, None], columns],
        )

    x = (torch.randn(2, 19, 24) * 5).to(dtype)
    rows, columns = torch.tensor([1, -1, 5]), torch.tensor([0, -24, 3, 3, 23])
    found = torch.compile(picked, backend=opkit, dynamic=False)(x, rows, columns)
    for mine, expected in zip(found, picked(x, rows, columns), strict=True):
        assert torch.equal(mine, expected)


def test_an_element_beyond_a_row_is_a_fault_at_the_models_line() -> None:
    def picked(x: Any, index: Any) -> Any:
        return x.index_select(1, index * 2)

    compiled = torch.compile(picked, backend=opkit, dynamic=False)
    x = torch.randn(40, 64)
    assert torch.equal(compiled(x, torch.tensor([1, 31])), picked(x, torch.tensor([1, 31])))
    with pytest.raises(Exception, match=r"behind the end of argument(.|\n)*test_parts.py:"):
        compiled(x, torch.tensor([1, 32]))


def test_an_image_is_resized_by_rows_and_gathers() -> None:
    def resized(x: Any) -> Any:
        return torch.nn.functional.interpolate(x, scale_factor=1.7, mode="bilinear")

    x = torch.randn(2, 3, 20, 24)
    with watching() as graphs:
        found = torch.compile(resized, backend=opkit, dynamic=False)(x)
    torch.testing.assert_close(found, resized(x), rtol=1e-5, atol=1e-5)
    (segment,) = graphs[0].segments
    assert any("Gather(" in kernel.source for kernel in segment.plan.kernels)
