"""Operators that other operators of the device make up, against the CPU in the same type."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")
F = torch.nn.functional

FLOATS = [torch.float32, torch.float16, torch.bfloat16]
WHOLE = [torch.int8, torch.int32, torch.int64]
TOLERANCE = {torch.float32: 1e-5, torch.float16: 2e-3, torch.bfloat16: 2e-2}


def numbers(dtype: torch.dtype, *sizes: int) -> torch.Tensor:
    torch.manual_seed(0)
    if dtype == torch.bool:
        return torch.randint(0, 2, sizes).bool()
    return torch.randn(sizes).mul(4).to(dtype)


def compare(function: Callable[..., Any], *inputs: torch.Tensor, is_native: bool = True) -> None:
    expected = function(*inputs)
    torch.npu.reset_fallbacks()
    actual = function(*(x.npu() for x in inputs))
    if is_native:
        assert not torch.npu.fallbacks(), str(torch.npu.fallbacks())
    tolerance = TOLERANCE.get(expected.dtype, 0)
    torch.testing.assert_close(actual.cpu(), expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype", [*FLOATS, *WHOLE, torch.bool])
def test_elements_that_a_mask_chooses(dtype: torch.dtype) -> None:
    x, mask = numbers(dtype, 3, 4, 5), numbers(torch.bool, 3, 4, 5)
    compare(torch.nonzero, x)
    compare(torch.nonzero, x.transpose(0, 2))
    compare(torch.nonzero, torch.zeros_like(x))
    compare(torch.masked_select, x, mask)
    compare(torch.masked_select, x, mask[0])
    compare(torch.masked_select, x, torch.zeros_like(mask))


@pytest.mark.parametrize("dtype", [*FLOATS, *WHOLE])
@pytest.mark.parametrize("kind", ["sum", "mean"])
@pytest.mark.parametrize("includes_self", [True, False])
def test_sums_and_means_at_places(dtype: torch.dtype, kind: str, includes_self: bool) -> None:
    x, source = numbers(dtype, 4, 5), numbers(dtype, 4, 7)
    places = torch.arange(28).reshape(4, 7) * 3 % 4
    compare(
        lambda x, i, s: x.scatter_reduce(1, i, s, kind, include_self=includes_self),
        x,
        places,
        source,
        is_native=dtype.is_floating_point,
    )


@pytest.mark.parametrize("dtype", [*FLOATS, *WHOLE])
def test_elements_put_and_added_at_places(dtype: torch.dtype) -> None:
    x, places = numbers(dtype, 4, 5), torch.tensor([3, -1, 3, 7])
    compare(lambda x, i, s: x.clone().put_(i, s, True), x, places, numbers(dtype, 4))
    compare(lambda x, i, s: x.clone().put_(i[1:], s, False), x, places, numbers(dtype, 3))
    compare(
        lambda x, i, s: x.index_add(1, i, s, alpha=2),
        x,
        torch.tensor([0, 4, 0]),
        numbers(dtype, 4, 3),
    )


@pytest.mark.parametrize("dtype", [torch.int8, torch.int32, torch.int64])
def test_whole_numbers_stay_whole(dtype: torch.dtype) -> None:
    most = torch.iinfo(dtype).max
    x = torch.tensor([most, most - 1, 3, -most, 0], dtype=dtype)
    # Floats hold no whole numbers of this size: each has to come out as it is.
    compare(lambda x: x.clamp(-5, most // 2 if dtype != torch.int64 else 2**40 + 1), x)
    compare(lambda x: x.clamp(min=-5), x)
    compare(lambda x: x.to(torch.int64), x)
    compare(lambda x: x.to(torch.int32), x)
    compare(lambda x: x.to(torch.int16), x)
    compare(lambda x: x.to(torch.uint8), x)
    compare(lambda x: x.to(torch.bool), x)
    compare(lambda x: x[::2].to(torch.int64), x)
    compare(torch.dot, numbers(dtype, 9), numbers(dtype, 9), is_native=dtype != torch.int8)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("mode", ["reflect", "replicate"])
def test_paddings_and_their_gradients(dtype: torch.dtype, mode: str) -> None:
    for shape, padding in (
        ((2, 3, 7), (2, 3)),
        ((3, 7), (0, 1)),
        ((2, 3, 5, 6), (2, 1, 3, 4)),
        ((3, 4, 5, 6), (1, 2, 3, 1, 2, 0)),
    ):
        x = numbers(dtype, *shape)
        compare(lambda x, p=padding: F.pad(x, p, mode), x)

        def gradient(x: torch.Tensor, p: tuple[int, ...] = padding) -> torch.Tensor:
            x = x.detach().requires_grad_()
            padded = F.pad(x, p, mode)
            (grad,) = torch.autograd.grad(padded, x, torch.ones_like(padded))
            return grad

        compare(gradient, x)


def test_paddings_that_do_not_fit_are_refused() -> None:
    with pytest.raises(RuntimeError, match=r"[Pp]adding size"):
        F.pad(torch.ones(1, 2, 3, device="npu"), (3, 0), "reflect")


@pytest.mark.parametrize("dtype", [*FLOATS, *WHOLE, torch.bool])
def test_a_matrix_of_ones_on_its_diagonal(dtype: torch.dtype) -> None:
    for sizes in ((3,), (2, 5), (5, 2)):
        torch.npu.reset_fallbacks()
        actual = torch.eye(*sizes, dtype=dtype, device="npu")
        assert not torch.npu.fallbacks()
        assert torch.equal(actual.cpu(), torch.eye(*sizes, dtype=dtype))
