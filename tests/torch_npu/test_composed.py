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
    torch.testing.assert_close(
        actual.cpu(), expected, rtol=tolerance, atol=tolerance, equal_nan=True
    )


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


def compare_slopes(function: Callable[..., Any], *inputs: torch.Tensor) -> None:
    """Compare the result and the gradients of the floats among the inputs."""

    def both(*given: torch.Tensor) -> torch.Tensor:
        floats = [x.is_floating_point() for x in given]
        taken = [x.clone().requires_grad_(f) for x, f in zip(given, floats, strict=True)]
        result = function(*taken)
        result.backward(torch.linspace(-1, 2, result.numel()).to(result).reshape(result.shape))
        slopes = [x.grad.flatten() for x, f in zip(taken, floats, strict=True) if f]
        return torch.cat([result.detach().flatten(), *slopes])

    compare(both, *inputs)


@pytest.mark.parametrize("dtype", [*FLOATS, *WHOLE])
@pytest.mark.parametrize("kind", ["amax", "amin"])
@pytest.mark.parametrize("includes_self", [True, False])
def test_extremes_at_places(dtype: torch.dtype, kind: str, includes_self: bool) -> None:
    # "a reduction by another function" sent a graph's attention to the CPU.
    x, source = numbers(dtype, 4, 5), numbers(dtype, 6, 7)
    places = torch.arange(28).reshape(4, 7) * 3 % 4

    def at_places(x: torch.Tensor, i: torch.Tensor, s: torch.Tensor) -> torch.Tensor:
        return x.scatter_reduce(1, i, s, kind, include_self=includes_self)

    compare(at_places, x, places, source, is_native=dtype.is_floating_point)
    if dtype == torch.float32:
        x[0, 0] = source[1, 2] = torch.nan
        source[2, 3] = -torch.inf
        compare(at_places, x, places, source)
        many = torch.arange(3000) * 7 % 300
        compare(
            lambda x, i, s: x.scatter_reduce(0, i, s, kind, include_self=includes_self),
            numbers(dtype, 300),
            many,
            numbers(dtype, 3000),
        )


@pytest.mark.parametrize("dtype", FLOATS)
def test_weights_by_length_and_direction(dtype: torch.dtype) -> None:
    v = numbers(dtype, 3, 4, 5)
    for dim, length in ((0, numbers(dtype, 3, 1, 1)), (2, numbers(dtype, 1, 1, 5))):
        compare_slopes(lambda v, g, dim=dim: torch._weight_norm(v, g, dim), v, length)
        compare(lambda v, g, dim=dim: torch._weight_norm_interface(v, g, dim)[1], v, length)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(
    ("mode", "padding"), [("sum", None), ("sum", 2), ("mean", None), ("mean", 2), ("max", None)]
)
def test_rows_by_the_bag(dtype: torch.dtype, mode: str, padding: int | None) -> None:
    # DLRM's bags were 123 of 144 calls of the CPU.
    table, places = numbers(dtype, 6, 3), torch.tensor([0, 1, 2, 3, 4, 5, 0, 2])
    table[3] = table[4]  # the first of equal ones has the gradient of the largest
    given = {"mode": mode, "padding_idx": padding}
    for begins in ([0, 2, 2, 5], [0, 0, 8, 8], [0]):
        offsets = torch.tensor(begins)
        compare_slopes(lambda w, i, o: F.embedding_bag(i, w, o, **given), table, places, offsets)
        compare(
            lambda w, i, o: F.embedding_bag(i, w, o, include_last_offset=True, **given),
            table,
            places,
            torch.cat([offsets, torch.tensor([8])]),
        )
    compare_slopes(lambda w, i: F.embedding_bag(i, w, **given), table, places.reshape(2, 4))
    if mode == "sum":
        compare_slopes(
            lambda w, i, f: F.embedding_bag(i, w, per_sample_weights=f, **given),
            table,
            places.reshape(4, 2),
            numbers(dtype, 4, 2),
        )
    with pytest.raises(RuntimeError, match=r"offsets\[0\] has to be 0"):
        F.embedding_bag(places.npu(), table.npu(), torch.tensor([1, 2]).npu(), mode=mode)
    # The CPU reads behind an empty tensor, which can end the process.
    with pytest.raises(RuntimeError, match="offsets is empty"):
        F.embedding_bag(places.npu(), table.npu(), places[:0].npu(), mode=mode)


@pytest.mark.parametrize("name", ["tril_indices", "triu_indices"])
def test_places_of_a_triangle(name: str) -> None:
    for rows, columns, offset in ((3, 3, 0), (4, 2, -1), (2, 5, 1), (2, 2, -3)):
        expected = getattr(torch, name)(rows, columns, offset)
        torch.npu.reset_fallbacks()
        actual = getattr(torch, name)(rows, columns, offset, device="npu")
        assert not torch.npu.fallbacks(), str(torch.npu.fallbacks())
        assert torch.equal(actual.cpu(), expected)
        assert actual.is_contiguous()


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("mode", ["nearest", "nearest-exact"])
def test_nearest_neighbours(dtype: torch.dtype, mode: str) -> None:
    # Each resolution of diffusers' autoencoders was a call of the CPU.
    x = numbers(dtype, 2, 3, 4, 5)
    for size in ((8, 10), (12, 5), (7, 11), (3, 2), (4, 5)):
        compare_slopes(lambda x, size=size: F.interpolate(x, size=size, mode=mode), x)
    for factor in (2.0, 1.7, 0.6):
        compare_slopes(lambda x, f=factor: F.interpolate(x, scale_factor=f, mode=mode), x)
    compare_slopes(lambda x: F.interpolate(x, scale_factor=3, mode=mode), x[0])
    compare_slopes(lambda x: F.interpolate(x, scale_factor=1.4, mode=mode), x[None])
    lasting = x.contiguous(memory_format=torch.channels_last)
    compare_slopes(lambda x: F.interpolate(x, scale_factor=2, mode=mode), lasting)


def test_a_number_in_a_tensor_fills() -> None:
    x = numbers(torch.float32, 3, 4)
    compare(lambda x, v: x.clone().fill_(v), x, torch.tensor(2.5))
    compare(
        lambda x, i, v: x.clone().index_fill_(1, i, v),
        x,
        torch.tensor([0, 2]),
        torch.tensor(2.5),
    )
