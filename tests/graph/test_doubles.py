"""float64 between narrower types is computed in float32, products of int8 in int32."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from opkit.graph.backend import opkit, watching  # noqa: E402

pytestmark = pytest.mark.torch


def _run(function: Any, *given: Any) -> tuple[Any, list[str]]:
    """Return what a compiled function gives, and the operators that torch still runs."""
    with watching() as graphs, torch.no_grad():
        found = torch.compile(function, backend=opkit, dynamic=False)(*given)
    left = [each.operator for graph in graphs for each in graph.left if not each.is_view]
    return found, left


def _int8(*shape: int) -> Any:
    return torch.randint(-128, 128, shape).to(torch.int8)


@pytest.mark.parametrize("shape", [((), 64, 96, 48), ((), 33, 77, 45), ((2,), 16, 32, 24)], ids=str)
def test_a_quantised_product_is_one_of_int8(shape: Any) -> None:
    # torch computed it in float64, on the CPU.
    outer, m, k, n = shape

    def product(a: Any, b: Any, scale: Any, token: Any, bias: Any) -> Any:
        sums = torch.matmul(a.double(), b.double()) + bias.double()
        return (sums * scale.double() * token.double().unsqueeze(-1)).to(torch.float16)

    bias = torch.randint(-500, 500, (n,), dtype=torch.int32)
    given = _int8(*outer, m, k), _int8(*outer, k, n), torch.rand(n) / 1000, torch.rand(m), bias
    found, left = _run(product, *given)
    assert left == []
    torch.testing.assert_close(found, product(*given), rtol=1e-3, atol=1e-4)


def test_scales_of_16_bits_are_applied_as_the_product_is_handed_over() -> None:
    # The product was written in float32 and read again, as a kernel made float32 of the scales.
    def product(a: Any, b: Any, scale: Any) -> Any:
        return ((a.double() @ b.double()) * scale.double()).to(torch.bfloat16)

    with watching() as graphs:
        torch.compile(product, backend=opkit)(_int8(16, 32), _int8(32, 64), torch.rand(64).half())
    kernels = [kernel.operators for s in graphs[0].segments for kernel in s.plan.kernels]
    assert kernels == [("cast",), ("matmul", "cast", "mul", "cast")]


def test_turned_matrices_stay_int8() -> None:
    def product(a: Any, b: Any) -> Any:
        return (a.double().t() @ b.double().t() * 0.001).to(torch.bfloat16)

    given = _int8(64, 40), _int8(24, 64)
    found, left = _run(product, *given)
    assert left == []
    torch.testing.assert_close(found, product(*given), rtol=1e-2, atol=1e-4)


def test_doubles_that_someone_sees_stay_doubles() -> None:
    def seen(a: Any, b: Any, x: Any) -> Any:
        product = a.double() @ b.double()
        return product, (x.double() + 1e-12).to(torch.float32), (product / 3).to(torch.float16)

    given = _int8(8, 16), _int8(16, 8), torch.randn(5, 7)
    found, left = _run(seen, *given)
    assert "aten.mm.default" in left
    for mine, other in zip(found, seen(*given), strict=True):
        assert mine.dtype == other.dtype
        torch.testing.assert_close(mine, other, rtol=1e-7, atol=0)


def test_products_of_doubles_that_are_no_int8_stay_doubles() -> None:
    def product(a: Any, b: Any) -> Any:
        return (a.double() @ b.double()).to(torch.float16)

    found, left = _run(product, torch.randn(8, 16), torch.randn(16, 8))
    assert "aten.mm.default" in left and found.dtype == torch.float16
