"""Kernels beside those of element-wise functions and norms, against the CPU in the same type."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from opkit.sanitizer import Check

torch = pytest.importorskip("torch")
F = torch.nn.functional

TYPES = [torch.float32, torch.float16, torch.bfloat16]
TOLERANCE = {torch.float32: 1e-4, torch.float16: 4e-3, torch.bfloat16: 3e-2}


def tensors(value: Any) -> list[torch.Tensor]:
    leaves = torch.utils._pytree.tree_leaves(value)
    return [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]


def results(function: Callable[..., Any], inputs: list[torch.Tensor]) -> list[torch.Tensor]:
    """What a function returns, and the gradients of its inputs."""
    taken = [x.detach().requires_grad_(x.is_floating_point()) for x in inputs]
    outputs = tensors(function(*taken))
    ends = [x for x in outputs if x.requires_grad]
    if ends:
        weights = [torch.full_like(x, 0.5) for x in ends]
        sources = [x for x in taken if x.requires_grad]
        outputs += [
            x
            for x in torch.autograd.grad(ends, sources, weights, allow_unused=True)
            if x is not None
        ]
    return [x.detach().cpu() for x in outputs]


def compare(function: Callable[..., Any], *inputs: torch.Tensor) -> None:
    expected = results(function, list(inputs))
    torch.npu.reset_fallbacks()
    actual = results(function, [x.npu() for x in inputs])
    assert not torch.npu.fallbacks(), str(torch.npu.fallbacks())
    for mine, other in zip(actual, expected, strict=True):
        tolerance = TOLERANCE.get(other.dtype, 0)
        torch.testing.assert_close(mine, other, rtol=tolerance, atol=tolerance, equal_nan=True)


@pytest.mark.parametrize("dtype", TYPES)
def test_elements_by_number(dtype: torch.dtype) -> None:
    x, places = torch.randn(3, 5, 7).to(dtype), torch.randint(0, 5, (3, 5, 7))
    rows, columns = torch.tensor([0, -1, 1]), torch.tensor([2, 2, -3])
    compare(lambda x, i: x.gather(1, i), x, places)
    compare(lambda x, i: x.scatter_add(1, i, x * 2), x, places)
    compare(lambda x, i, j: (x[i], x[:, i, j], x[i, :, j]), x, rows, columns)
    compare(lambda x, i: x.index_select(2, i + 3), x, columns)
    compare(lambda x: (x.flip(0, 2), x.roll((2, -1), (1, 2))), x)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.int8])
def test_rows_that_lie_across_are_turned_in_tiles(dtype: torch.dtype) -> None:
    # Each element was a copy of its own: 1 Mi took 130 us. Tiles, their ends, few rows, other dims.
    def turned(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        part = x[1:40, :, 3:120:2]
        return tuple(
            y.contiguous() for y in (x.permute(2, 0, 1), x[:, 1].t(), part.mT, x.permute(1, 2, 0))
        )

    with Check(()) as checks:
        compare(turned, torch.randint(-99, 99, (150, 3, 131)).to(dtype))
    assert not checks.findings, checks.findings[0]


def test_a_place_beyond_the_table_is_an_error() -> None:
    with pytest.raises(IndexError, match=r"out of (bounds|range)"):
        torch.ones(3, device="npu")[torch.tensor([5], device="npu")]


@pytest.mark.parametrize("dtype", TYPES)
def test_lines_in_order(dtype: torch.dtype) -> None:
    x = torch.randn(3, 5, 7).to(dtype)
    compare(lambda x: (x.sort(1), x.sort(2, descending=True), x.topk(3, 1)), x)
    compare(lambda x: (x.argmax(1), x.argmin(), x.max(2), x.min(0), x.cummax(1)), x)
    compare(lambda x: x.cumsum(1), x)


def test_sums_and_products_of_whole_numbers() -> None:
    x = torch.randint(-9, 9, (4, 5, 6))
    compare(lambda x: (x.sum(), x.sum(1), x.prod(2), x.cumsum(0), x.amax(1), x // 3, x % 3), x)
    compare(lambda x: (x.sum(), x.max(1)), x.int())
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        x.npu() // torch.zeros_like(x).npu()


def test_nan_goes_before_all_others() -> None:
    x = torch.tensor([[1.0, float("nan"), 3.0], [2.0, -1.0, float("inf")]])
    compare(lambda x: (x.max(1), x.argmin(1), x.sort(1)), x.detach())


CONVOLUTIONS = [
    {},
    {"stride": 2, "padding": 1},
    {"padding": 2, "dilation": 2},
    {"stride": 2, "groups": 2},
]


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("options", CONVOLUTIONS)
def test_convolutions_and_their_gradients(options: dict[str, int], dtype: torch.dtype) -> None:
    groups = options.get("groups", 1)
    x, bias = torch.randn(2, 4, 9, 8).to(dtype), torch.randn(6).to(dtype)
    weight = (torch.randn(6, 4 // groups, 3, 3) / 6).to(dtype)
    compare(lambda x, w, b: F.conv2d(x, w, b, **options), x, weight, bias)
    compare(lambda x, w: F.conv1d(x, w, **options), x[:, :, 0].clone(), weight[..., 0].clone())
    turned = (torch.randn(4, 6 // groups, 3, 3) / 6).to(dtype)
    compare(lambda x, w, b: F.conv_transpose2d(x, w, b, **options), x, turned, bias)


POOLINGS = [
    {"kernel_size": 2},
    {"kernel_size": 3, "stride": 2, "padding": 1},
    {"kernel_size": 3, "stride": 2, "ceil_mode": True},
]


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("options", POOLINGS)
def test_largest_of_windows(options: dict[str, int], dtype: torch.dtype) -> None:
    x = torch.randn(2, 3, 9, 10).to(dtype)
    compare(lambda x: F.max_pool2d(x, return_indices=True, **options), x)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("is_training", [True, False])
def test_batch_norm_and_its_gradients(is_training: bool, dtype: torch.dtype) -> None:
    x = torch.randn(4, 3, 5).to(dtype)
    weight, bias, mean = (torch.randn(3).to(dtype) for _ in range(3))
    variance = torch.rand(3).to(dtype) + 1

    def norm(x: torch.Tensor, *given: torch.Tensor) -> torch.Tensor:
        kept = [each.to(x.device) for each in (mean.clone(), variance.clone())]
        return F.batch_norm(x, *kept, *given, training=is_training)

    compare(norm, x)
    compare(norm, x, weight, bias)


def test_places_of_windows_that_are_one_row_high() -> None:
    # Planes of one row are one long row, but the places begin anew in each.
    x = torch.randn(2, 3, 3, 6)
    compare(lambda x: F.max_pool2d(x, 3, 2, ceil_mode=True, return_indices=True), x)
    compare(lambda x: F.max_pool1d(x, 3, 2, return_indices=True), x[0])


@pytest.mark.parametrize("shape", [(4, 1, 5), (3, 5, 1), (4, 1, 1)])
def test_triangles_of_single_rows_and_columns(shape: tuple[int, ...]) -> None:
    x = torch.randn(shape)
    compare(lambda x: (x.tril(), x.triu(), x.tril(-1), x.triu(1)), x)


def test_means_of_windows() -> None:
    x = torch.randn(2, 3, 8, 10)
    compare(lambda x: (F.avg_pool2d(x, 2), F.adaptive_avg_pool2d(x, (4, 2))), x)


@pytest.mark.parametrize("reduction", ["none", "sum", "mean"])
def test_losses_and_their_gradients(reduction: str) -> None:
    x, target = torch.randn(6, 5), torch.tensor([1, 0, 4, -100, 2, 3])
    compare(lambda x, t: F.cross_entropy(x, t, reduction=reduction), x, target)
    weight = torch.rand(5)
    compare(lambda x, t, w: F.nll_loss(x, t, w.detach(), reduction=reduction), x, target, weight)
    image = torch.randint(0, 5, (2, 3, 4))
    compare(lambda x, t: F.cross_entropy(x, t, reduction=reduction), torch.randn(2, 5, 3, 4), image)
    for loss in (F.mse_loss, F.smooth_l1_loss, F.huber_loss):
        compare(lambda x, y, loss=loss: loss(x, y, reduction=reduction), x, torch.randn(6, 5))


def test_softmax_goes_along_any_dim_and_any_length() -> None:
    compare(lambda x: (x.softmax(0), x.log_softmax(1)), torch.randn(3, 5, 7))
    compare(lambda x: x.log_softmax(-1), torch.randn(2, 20_000))


def test_halves_round_to_even_and_infinities_are_floats() -> None:
    compare(lambda x: x.round(), torch.tensor([0.5, 1.5, 2.5, -0.5, -1.5, 0.4]).bfloat16())
    compare(lambda x: torch.isinf(x), torch.tensor([0, 1, -1]))


def test_dropout_keeps_its_share_and_its_mask() -> None:
    x = torch.ones(20_000, device="npu", requires_grad=True)
    torch.npu.reset_fallbacks()
    y = F.dropout(x, 0.3)
    y.sum().backward()
    assert not torch.npu.fallbacks(), str(torch.npu.fallbacks())
    assert torch.equal(x.grad, y.detach())
    assert (y == 0).float().mean().item() == pytest.approx(0.3, abs=0.02)


def test_random_numbers_have_the_moments_of_their_distribution() -> None:
    x = torch.empty(50_000, device="npu")
    assert x.uniform_(2, 4).mean().item() == pytest.approx(3, abs=0.02)
    assert x.min().item() >= 2 and x.max().item() < 4
    assert x.normal_(1, 2).std().item() == pytest.approx(2, abs=0.05)
    assert x.exponential_(0.5).mean().item() == pytest.approx(2, abs=0.1)


def test_shared_weights_stay_shared_on_the_device() -> None:
    model = torch.nn.ModuleDict({"first": torch.nn.Linear(3, 3), "last": torch.nn.Linear(3, 3)})
    model["last"].weight = model["first"].weight
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    model.to("npu")
    assert model["last"].weight is model["first"].weight
    assert model["last"].weight.device.type == "npu"
    model["first"](torch.ones(1, 3, device="npu")).sum().backward()
    before = model["first"].weight.detach().cpu()
    optimizer.step()
    assert torch.equal(model["last"].weight.detach().cpu(), before - 1)
    assert model.cpu()["last"].weight is model["first"].weight


def test_autocast_computes_products_in_the_lower_type() -> None:
    model = torch.nn.Linear(4, 4).npu()
    scaler = torch.amp.GradScaler("npu")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with torch.autocast("npu", dtype=torch.float16):
        y = model(torch.ones(2, 4, device="npu"))
        loss = y.softmax(-1).log().sum()
    assert y.dtype == torch.float16
    assert loss.dtype == torch.float32
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    assert model.weight.grad.dtype == torch.float32


@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_moments_and_norms_of_any_order(dtype: torch.dtype) -> None:
    x = torch.randn(3, 4, 5).to(dtype)
    compare(lambda x: (torch.var_mean(x, 1), torch.std_mean(x, (0, 2), correction=0)), x)
    for order in (2, 1, 3, 0.5, 0, float("inf"), -float("inf"), -1):
        compare(lambda x, p=order: torch.linalg.vector_norm(x.detach(), p, 1), x)
    compare(lambda x: (torch.norm(x.detach(), 2, 1), torch.norm(x.detach(), 3, (0, 1))), x)


@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_log_sigmoid_and_hardtanh_with_their_gradients(dtype: torch.dtype) -> None:
    x = torch.cat([torch.randn(40), torch.tensor([0.0, -100.0, 100.0, 12.0])]).to(dtype)
    compare(lambda x: (F.logsigmoid(x), F.hardtanh(x)), x)


def test_log_sigmoid_keeps_the_digits_of_what_is_nearly_nothing() -> None:
    x = torch.tensor([5.0, 10.0, 15.0, 20.0])
    torch.testing.assert_close(F.logsigmoid(x.npu()).cpu(), F.logsigmoid(x), rtol=1e-5, atol=0)


@pytest.mark.parametrize("count", [2, 5, 300])
def test_spaced_numbers_meet_both_ends(count: int) -> None:
    expected = torch.linspace(-3.0, 7.0, count)
    torch.npu.reset_fallbacks()
    found = torch.linspace(-3.0, 7.0, count, device="npu")
    assert not torch.npu.fallbacks(), str(torch.npu.fallbacks())
    torch.testing.assert_close(found.cpu(), expected, rtol=1e-6, atol=1e-6)
    assert (found[0].item(), found[-1].item()) == (-3.0, 7.0)


@pytest.mark.parametrize("dtype", [*TYPES, torch.bool, torch.uint8, torch.int16], ids=str)
def test_one_value_at_the_places_of_a_mask(dtype: torch.dtype) -> None:
    def put(x: torch.Tensor) -> list[torch.Tensor]:
        y, z = x.detach().clone(), x.detach().clone()
        y[y != 0] = 1
        z[torch.tensor([True, False, True], device=x.device)] = 0
        return [y, z]

    compare(put, torch.randint(0, 3, (3, 4, 5)).to(dtype))


def test_a_mask_and_a_value_may_be_of_the_tensor_itself() -> None:
    for device in ("cpu", "npu"):
        x = torch.tensor([2.0, 3.0, 4.0], device=device)
        x[x > 1] = x[1]
        assert x.tolist() == [3.0, 3.0, 3.0]
        flags = torch.tensor([[True, False], [False, True]], device=device)
        flags[flags[:, 1]] = False
        assert flags.tolist() == [[True, False], [False, False]]
        flags[flags] = False
        assert not flags.any()


@pytest.mark.parametrize("dtype", [torch.int8, torch.uint8, torch.int16], ids=str)
def test_small_whole_numbers_between_bounds(dtype: torch.dtype) -> None:
    compare(
        lambda x: (x.clamp(3, 90), x.clamp(min=7), x.clamp(max=11)), torch.arange(120).to(dtype)
    )


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.int8, torch.uint8], ids=str)
def test_products_of_whole_numbers_wrap_as_on_the_cpu(dtype: torch.dtype) -> None:
    low = 0 if dtype == torch.uint8 else -100
    a, c = torch.randint(low, 100, (3, 5, 7)).to(dtype), torch.randint(low, 100, (5, 4)).to(dtype)
    b = torch.randint(low, 100, (3, 4, 7)).to(dtype).transpose(1, 2)
    torch.npu.reset_fallbacks()
    assert torch.equal(torch.bmm(a.npu(), b.npu()).cpu(), torch.bmm(a, b))
    assert torch.equal((a[0].npu() @ b[0].npu()).cpu(), a[0] @ b[0])
    found = torch.addmm(c.npu(), a[0].npu(), b[0].npu(), beta=2, alpha=3)
    assert torch.equal(found.cpu(), torch.addmm(c, a[0], b[0], beta=2, alpha=3))
    assert list(torch.npu.fallbacks()) == []


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_the_gradient_of_hardswish_at_its_bends_is_torchs(dtype: Any) -> None:
    x = torch.tensor([-4, -3, -2.5, 0, 2.5, 3, 4])
    wanted = torch.ops.aten.hardswish_backward(torch.ones(7), x).to(dtype)
    found = torch.ops.aten.hardswish_backward(
        torch.ones(7, dtype=dtype, device="npu"), x.to(dtype).to("npu")
    )
    torch.testing.assert_close(found.cpu(), wanted)


@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
def test_a_picture_is_sampled_between_its_elements(mode: str, padding: str) -> None:
    picture, grid = torch.randn(2, 3, 5, 7), torch.rand(2, 4, 6, 2) * 3 - 1.5
    for aligns in (False, True):
        compare(lambda x, at, a=aligns: F.grid_sample(x, at, mode, padding, a), picture, grid)


@pytest.mark.parametrize("mode", ["bilinear", "nearest"])
def test_a_volume_is_sampled_between_its_elements(mode: str) -> None:
    volume, grid = torch.randn(2, 2, 3, 4, 5), torch.rand(2, 2, 3, 2, 3) * 3 - 1.5
    compare(lambda x, at: F.grid_sample(x, at, mode, "reflection", True), volume, grid)


def test_places_that_are_no_number_give_none() -> None:
    grid = torch.tensor([[[[0.1, float("nan")], [float("inf"), 0.2], [0.3, 0.4]]]])
    compare(lambda x, at: F.grid_sample(x, at, align_corners=False), torch.randn(1, 2, 4, 4), grid)


def test_a_batch_is_normalised_as_exported_programs_have_it() -> None:
    x, ones = torch.randn(3, 4, 5), torch.rand(4) + 0.5
    legit = torch.ops.aten._native_batch_norm_legit

    def normalised(x: torch.Tensor, weight: torch.Tensor, is_training: bool) -> Any:
        mean, variance = weight.detach().clone(), weight.detach() * 2
        y, *_ = legit(x, weight, weight, mean, variance, is_training, 0.1, 1e-5)
        return y, mean, variance

    for is_training in (False, True):
        compare(lambda x, w, t=is_training: normalised(x, w, t), x, ones)
    compare(lambda x, w: legit.no_stats(x, w, None, True, 0.1, 1e-5)[0], x, ones)


def test_a_part_of_a_tensor_is_filled() -> None:
    compare(lambda x: x.clone()[:, ::2].fill_(3), torch.randn(3, 5))
    compare(lambda x: x.clone().t()[1:].zero_(), torch.arange(12).reshape(3, 4))
