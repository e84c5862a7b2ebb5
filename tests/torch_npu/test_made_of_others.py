"""Operators that other kernels make up: the CPU's results, and nothing left to the CPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch.nn import functional as F  # noqa: E402 - needs torch

pytestmark = pytest.mark.torch

Call = Callable[..., Any]
HALF = {torch.float32: 1e-5, torch.float16: 2e-3, torch.bfloat16: 2e-2}


def _moved(value: Any, device: str) -> Any:
    return torch.utils._pytree.tree_map_only(
        torch.Tensor, lambda x: x.detach().to(device).requires_grad_(x.requires_grad), value
    )


def agree(call: Call, *given: Any, tolerance: float = 1e-5, learns: bool = False) -> None:
    """Compare results, and gradients, with the CPU's; fail where the CPU took an operator."""

    def run(device: str) -> list[Any]:
        args = _moved(given, device)
        results = torch.utils._pytree.tree_leaves(call(*args))
        if learns:
            sum((y * y).sum() for y in results).backward()
            results += [x.grad for x in args if torch.is_tensor(x) and x.requires_grad]
        return results

    expected = run("cpu")
    torch.npu.reset_fallbacks()
    found = run("npu")
    assert not torch.npu.fallbacks(), torch.npu.fallbacks()
    for mine, other in zip(found, expected, strict=True):
        if torch.is_tensor(other):
            assert mine.device.type == "npu"
            mine, other = mine.detach().cpu(), other.detach()
        torch.testing.assert_close(mine, other, rtol=tolerance, atol=tolerance, equal_nan=True)


INTERPOLATED = [
    ("linear", (7,), None, False),
    ("linear", None, 2.5, True),
    ("bilinear", (9, 3), None, False),
    ("bilinear", (9, 3), None, True),
    ("bilinear", None, (0.6, 1.7), False),
    ("bicubic", (7, 9), None, False),
    ("bicubic", (3, 4), None, True),
    ("trilinear", (3, 7, 4), None, False),
]


@pytest.mark.parametrize("dtype", HALF)
def test_interpolation_and_its_gradient(dtype: torch.dtype) -> None:
    for mode, size, factor, aligns in INTERPOLATED:
        dims = {"linear": 1, "trilinear": 3}.get(mode, 2)
        x = torch.randn((2, 3, 5, 6, 4)[: dims + 2]).to(dtype).requires_grad_()
        agree(
            lambda x, m=mode, s=size, f=factor, a=aligns: F.interpolate(x, s, f, m, a),
            x,
            tolerance=HALF[dtype],
            learns=dtype == torch.float32,
        )


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
def test_interpolation_that_smooths(mode: str) -> None:
    x = torch.randn(1, 2, 9, 12, requires_grad=True)
    for size in ((4, 5), (13, 6)):
        agree(lambda x, s=size: F.interpolate(x, s, mode=mode, antialias=True), x, learns=True)


def test_what_has_no_weight_is_no_summand() -> None:
    x = torch.tensor([[[1.0, float("inf"), 2.0, 4.0]]])
    found = F.adaptive_avg_pool1d(x.npu(), 2).cpu()
    assert found.tolist() == [[[float("inf"), 3.0]]]


def test_means_of_windows_of_any_size() -> None:
    x = torch.randn(2, 3, 7, 8, requires_grad=True)
    for call in (
        lambda x: F.adaptive_avg_pool2d(x, (3, 5)),
        lambda x: F.avg_pool2d(x, 3, 1, 1, count_include_pad=False),
        lambda x: F.avg_pool2d(x, 3, 2, 1, ceil_mode=True),
        lambda x: F.avg_pool2d(x, 3, 2, 1, divisor_override=5),
        lambda x: F.interpolate(x, (3, 5), mode="area"),
    ):
        agree(call, x, learns=True)
    agree(lambda x: F.avg_pool1d(x, 3, 1, 1, count_include_pad=False), x[0], learns=False)
    y = torch.randn(1, 2, 5, 6, 4, requires_grad=True)
    agree(lambda y: F.avg_pool3d(y, 3, 2, 1), y, learns=True)
    agree(lambda y: F.adaptive_avg_pool3d(y, (2, 4, 3)), y, learns=True)


def test_windows_beside_each_other_and_back() -> None:
    x = torch.randn(2, 3, 6, 7, requires_grad=True)
    agree(lambda x: F.unfold(x, (2, 3), 1, 1, 2), x, learns=True)
    agree(lambda x: F.unfold(x, 3, 2, 0, 1), x, learns=True)
    y = torch.randn(2, 3 * 6, 4 * 3, requires_grad=True)
    agree(lambda y: F.fold(y, (6, 6), (2, 3), 1, (1, 1), (2, 2)), y[..., :12], learns=False)


def test_what_pooling_took_goes_back() -> None:
    values, places = F.max_pool2d(torch.randn(2, 3, 6, 6), 2, return_indices=True)
    agree(lambda v, p: F.max_unpool2d(v, p, 2), values, places)
    values, places = F.max_pool3d(torch.randn(2, 4, 4, 4), 2, return_indices=True)
    agree(lambda v, p: F.max_unpool3d(v, p, 2), values, places)


POLYNOMIALS = [
    *(f"chebyshev_polynomial_{kind}" for kind in "tuvw"),
    *(f"shifted_chebyshev_polynomial_{kind}" for kind in "tuvw"),
    "hermite_polynomial_h",
    "hermite_polynomial_he",
    "laguerre_polynomial_l",
    "legendre_polynomial_p",
]


@pytest.mark.parametrize("name", POLYNOMIALS)
def test_polynomials_of_any_degree(name: str) -> None:
    x = torch.tensor([-1.5, -1.0, -0.3, 0.0, 0.4, 1.0, 2.0, 0.9])
    n = torch.tensor([0.0, 1.0, 2.7, 3.0, 5.0, 6.0, -1.0, -0.5])
    function = getattr(torch.special, name)
    agree(function, x, n, tolerance=2e-5)
    agree(function, x.round().int(), n.int(), tolerance=2e-5)
    agree(lambda x: function(x, 3), x.reshape(2, 4), tolerance=2e-5)


def test_elements_in_order() -> None:
    line = torch.tensor([-1.0, 0.0, 0.0, 2.0, 5.0])
    x = torch.tensor([[-2.0, 0.0, 1.0], [5.0, float("nan"), 9.0]])
    for is_right in (False, True):
        agree(lambda x, b, r=is_right: torch.bucketize(x, b, right=r), x, line)
        agree(
            lambda b, x, r=is_right: torch.searchsorted(b, x, right=r, out_int32=True),
            torch.stack((line, line + 1)),
            x,
        )
    whole = torch.tensor([3, -4, 3, 8, 0, 3])
    agree(lambda x: torch.bucketize(x, torch.tensor([0, 3], device=x.device)), whole)
    agree(lambda x: torch.bincount(x, minlength=12), whole.abs())
    agree(lambda x, w: torch.bincount(x, w), whole.abs(), torch.rand(6))
    for x in (torch.randn(50) * 3, whole):
        agree(lambda x: torch.histc(x.float(), 4, -2, 3), x)
        agree(lambda x: torch.histc(x.float(), 7), x)


def test_medians_with_and_without_what_is_no_number() -> None:
    x = torch.randn(4, 5, 6)
    x[0, 1, 2] = x[0, 3, 2] = float("nan")
    for given in (x, torch.randn(7), torch.tensor([4, 2, 9, 2]), torch.tensor(3.0)):
        agree(torch.median, given)
        agree(torch.nanmedian, given)
        for call in (torch.median, torch.nanmedian):
            agree(lambda x, c=call: c(x, 0, True).values, given)
    agree(lambda x: torch.median(x, 1).indices, torch.randperm(30).reshape(5, 6).float())


@pytest.mark.parametrize("dtype", [torch.int8, torch.uint8, torch.int32, torch.int64])
def test_whole_numbers(dtype: torch.dtype) -> None:
    low = 0 if dtype == torch.uint8 else -90
    a = torch.randint(low, 100, (5, 7)).to(dtype)
    b = torch.randint(max(low, -9), 10, (5, 7)).to(dtype)
    agree(lambda a, b: torch.div(a, b, rounding_mode="trunc"), a, b.masked_fill(b == 0, 3))
    places = torch.arange(-2, 68).clamp(min=-2 if low else 0).to(dtype)
    for value in (5, -7 if low else 200):
        agree(torch.bitwise_left_shift, torch.full_like(places, value), places)
        agree(torch.bitwise_right_shift, torch.full_like(places, value), places)
    agree(torch.pow, b, b.abs())
    if low:
        agree(
            torch.pow,
            torch.tensor([1, -1, -1, 3], dtype=dtype),
            torch.tensor([-3, -3, -2, -1], dtype=dtype),
        )
    agree(lambda a: a.sum(0, dtype=torch.float32), a)
    agree(lambda a: a.sum(dtype=torch.int8), a)
    agree(lambda a: (torch.equal(a, a.clone()), torch.equal(a, a.flip(0))), a)
    for call in (torch.tril, torch.triu):
        agree(lambda a, c=call: c(a, 1), a)


def test_a_shift_sizes_the_tensor_that_it_is_given() -> None:
    x, by, out = torch.tensor([5]).npu(), torch.tensor([1]).npu(), torch.ones(3).long().npu()
    assert torch.bitwise_right_shift(x, by, out=out).tolist() == [2]


def test_division_by_nothing_is_refused_as_on_the_cpu() -> None:
    a, b = torch.ones(2, dtype=torch.int32).npu(), torch.tensor([1, 0]).int().npu()
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        torch.div(a, b, rounding_mode="trunc")


def test_what_has_no_element() -> None:
    for shapes in (((0, 3), (3, 4)), ((2, 0), (0, 4)), ((2, 3), (3, 0))):
        agree(torch.mm, *map(torch.ones, shapes))
    agree(torch.bmm, torch.ones(2, 3, 0), torch.ones(2, 0, 4))
    agree(
        lambda c, a, b: torch.addmm(c, a, b, beta=3),
        torch.ones(2, 4),
        torch.ones(2, 0),
        torch.ones(0, 4),
    )
    agree(torch.vdot, torch.ones(0), torch.ones(0))
    agree(lambda x: F.unfold(x, 2), torch.ones(0, 1, 4, 4))
    agree(lambda x: x[x > 2], torch.ones(3))
    assert torch.tril_indices(0, 3, device="npu").shape == (2, 0)


def test_numbers_are_lines_of_one() -> None:
    x, source = torch.tensor(2.0), torch.tensor([5.0])
    place = torch.tensor([0])
    agree(lambda x, p: x.index_fill(0, p, 7), x, place)
    agree(lambda x, p, s: x.index_add(0, p, s[0], alpha=-2), x, place, source)
    for kind in ("amin", "amax", "mean"):
        agree(lambda x, p, s, k=kind: x.index_reduce(0, p, s[0], k), x, place, source)
        table, rows = torch.randn(4, 3), torch.randn(5, 3)
        places = torch.tensor([0, 2, 2, 3, 0])
        for includes in (True, False):
            agree(
                lambda t, p, r, k=kind, i=includes: t.index_reduce(0, p, r, k, include_self=i),
                table,
                places,
                rows,
            )


def test_masks_pick_and_take_values() -> None:
    x = torch.randn(5, 6, 4)
    mask, rows, planes = x[..., 0] > 0, x[:, 0, 0] > 0, x > 0.5
    number = torch.tensor([2, 0, 3])
    for call in (
        lambda x, m, r, p, n: x[m],
        lambda x, m, r, p, n: x[r],
        lambda x, m, r, p, n: x[p],
        lambda x, m, r, p, n: x[:, m[0]],
        lambda x, m, r, p, n: x[m][:, n],
        lambda x, m, r, p, n: x[r, 1],
        lambda x, m, r, p, n: x[..., n][r],
    ):
        agree(call, x, mask, rows, planes, number)

    def put(x: Any, m: Any, r: Any, p: Any, n: Any) -> Any:
        y = x.clone()
        y[r] = x[r] * 2
        y[m] = 3.0
        y[p] += 1
        y[n, 0] = torch.tensor(4.0)
        y[:, m[0]] = y[:, m[0]] + 1
        y[torch.zeros_like(r)] = 9.0
        return y

    agree(put, x, mask, rows, planes, number)
    with pytest.raises(IndexError, match="mask"):
        _ = x.npu()[mask.npu()[:3]]


def test_slopes_gates_and_others() -> None:
    x = torch.randn(2, 4, 3, requires_grad=True)
    weight = torch.rand(4, requires_grad=True)
    agree(F.prelu, x, weight, learns=True)
    agree(lambda x, w: F.prelu(x, w[:1]), x, weight.detach(), learns=False)
    for dim in (1, -1 if x.shape[-1] % 2 == 0 else 0):
        agree(lambda x, d=dim: F.glu(x, d), x, learns=True)
    agree(lambda x: torch.round(x * 100, decimals=1), x.detach())
    agree(lambda x: torch.round(x * 100, decimals=-1), x.detach())
    agree(
        lambda a, b: torch.addbmm(a[0], a, b, beta=2, alpha=3),
        torch.randn(3, 2, 2),
        torch.randn(3, 2, 2),
    )
    found = torch.logspace(-3, 2, 6, device="npu").cpu()
    torch.testing.assert_close(found, torch.logspace(-3, 2, 6))


def test_convolutions_over_volumes() -> None:
    x, bias = torch.randn(2, 4, 5, 6, 4), torch.randn(6, requires_grad=True)
    x.requires_grad_()
    weight = torch.randn(6, 2, 3, 2, 3, requires_grad=True)
    for settings in ((1, 0, 1, 2), ((2, 1, 2), (1, 0, 1), 1, 2), (1, (2, 1, 1), (2, 1, 1), 2)):
        agree(
            lambda x, w, b, s=settings: F.conv3d(x, w, b, *s),
            x,
            weight,
            bias,
            tolerance=1e-4,
            learns=True,
        )
    half = [y.detach().half() for y in (x, weight)]
    agree(lambda x, w: F.conv3d(x, w, groups=2), *half, tolerance=4e-3)


def test_what_overlaps_is_read_before_it_is_written() -> None:
    def interleave(x: Any) -> Any:
        x = x.clone()
        x[:, 1::2].copy_(x[:, ::2])
        return x

    x = torch.arange(12.0).reshape(3, 4)
    agree(interleave, x)
    moved = x.npu()
    moved[:, 1:] = moved[:, :-1]
    assert torch.equal(moved.cpu()[:, 1:], x[:, :-1])


def test_rows_of_65536_elements_are_multiplied() -> None:
    # The kernel ended with API-OPERAND: 25088 x 4096 filters of a VGG, 256 x 256 images.
    x = torch.randn(2, 65536)
    agree(lambda x: x @ x.t(), x / 256, tolerance=1e-4)
    agree(lambda w, x: w @ x, torch.randn(3, 2), x, tolerance=1e-4)
    agree(
        lambda x: F.conv2d(x, torch.ones(1, 1, 3, 3, device=x.device)), torch.randn(1, 1, 258, 258)
    )
