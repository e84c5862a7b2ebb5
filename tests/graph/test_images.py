"""Convolution, pooling, batch norm and dropout in compiled graphs, with their gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402

from opkit.errors import UsageError  # noqa: E402
from opkit.graph import build  # noqa: E402
from opkit.graph.aten import images  # noqa: E402
from opkit.graph.backend import opkit, watching  # noqa: E402

CASES: dict[str, tuple[Callable[..., Any], tuple[tuple[int, ...], ...]]] = {
    "steps and padding": (
        lambda x, w, b: F.conv2d(x, w, b, stride=2, padding=1),
        ((2, 4, 9, 8), (6, 4, 3, 3), (6,)),
    ),
    "groups and gaps": (
        lambda x, w: F.conv2d(x, w, stride=(1, 2), padding=(0, 1), dilation=(2, 1), groups=2),
        ((2, 4, 9, 8), (6, 2, 3, 2)),
    ),
    "patches": (
        lambda x, w, b: F.conv2d(x, w, b, stride=4),
        ((2, 3, 9, 8), (6, 3, 4, 4), (6,)),
    ),
    "lines": (lambda x, w: F.conv1d(x, w), ((1, 2, 10), (3, 2, 2))),
    "turned round": (
        lambda x, w, b: F.conv_transpose2d(x, w, b, stride=2, padding=1, output_padding=1),
        ((2, 3, 5, 4), (3, 4, 3, 3), (4,)),
    ),
    "largest of windows": (lambda x: F.max_pool2d(x, 3, 2, 1), ((2, 3, 9, 8),)),
    "means of windows": (
        lambda x: F.avg_pool2d(x, 3, 2, 1, ceil_mode=True, count_include_pad=False),
        ((2, 3, 9, 8),),
    ),
    "means of parts": (lambda x: F.adaptive_avg_pool2d(x, (3, 2)), ((2, 3, 9, 8),)),
    "patches put together": (
        lambda x: F.fold(x, (7, 9), (3, 2), stride=(2, 1), padding=(1, 0), dilation=(1, 2)),
        ((2, 18, 28),),
    ),
    "turned round without overlap": (
        lambda x, w: F.conv_transpose2d(x, w, stride=2),
        ((2, 3, 20, 24), (3, 4, 2, 2)),
    ),
    "norm of a batch": (
        lambda x, w, b: F.batch_norm(x, None, None, w, b, training=True),
        ((3, 4, 5, 6), (4,), (4,)),
    ),
}


ROUNDED_ONCE: dict[str, tuple[Callable[..., Any], tuple[tuple[int, ...], ...]]] = {
    "lines": (
        lambda x, w, b: F.conv1d(x, w, b, padding=1),
        ((2, 6, 20), (8, 6, 3), (8,)),
    ),
    "images": (
        lambda x, w, b: F.conv2d(x, w, b, padding=1),
        ((2, 6, 9, 9), (8, 6, 3, 3), (8,)),
    ),
    "a kernel for each channel": (
        lambda x, w, b: F.conv2d(x, w, b, padding=1, groups=6),
        ((2, 6, 9, 9), (6, 1, 3, 3), (6,)),
    ),
    "groups": (
        lambda x, w, b: F.conv2d(x, w, b, padding=1, groups=2),
        ((2, 6, 9, 9), (8, 3, 3, 3), (8,)),
    ),
    "turned round": (
        lambda x, w, b: F.conv_transpose2d(x, w, b, stride=2, padding=1),
        ((2, 6, 7, 7), (6, 8, 3, 3), (8,)),
    ),
    "a scaled product": (
        lambda x, w, b: torch.addmm(b, x, w, beta=0.5, alpha=2),
        ((20, 24), (24, 18), (20, 18)),
    ),
}


def run(function: Callable[..., Any], given: list[Any]) -> list[Any]:
    """Return a result and the gradients."""
    inputs = [each.clone().requires_grad_() for each in given]
    result = function(*inputs)
    (result * torch.linspace(-1, 1, result.numel()).reshape(result.shape)).sum().backward()
    return [result.detach(), *(each.grad for each in inputs)]


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_results_and_gradients_are_torchs_and_nothing_is_left(name: str) -> None:
    function, shapes = CASES[name]
    given = [torch.randn(shape) for shape in shapes]
    with watching() as graphs:
        found = run(torch.compile(function, backend=opkit), given)
    for actual, expected in zip(found, run(function, given), strict=True):
        torch.testing.assert_close(actual, expected, rtol=1e-4, atol=1e-4)
    assert [left for graph in graphs for left in graph.left if not left.is_view] == []


@pytest.mark.slow
def test_a_block_of_a_resnet_trains_with_its_running_values() -> None:
    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = nn.Conv2d(4, 8, 3, stride=2, padding=1, bias=False)
            self.norm = nn.BatchNorm2d(8)
            self.past = nn.Conv2d(4, 8, 1, stride=2, bias=False)

        def forward(self, x: Any) -> Any:
            return torch.relu(self.norm(self.first(x)) + self.past(x))

    model, x = Block(), torch.randn(2, 4, 8, 8)
    state = {name: value.clone() for name, value in model.state_dict().items()}
    with watching() as graphs:
        torch.compile(model, backend=opkit)(x).square().sum().backward()
    found = [p.grad.clone() for p in model.parameters()]
    running = [value.clone() for value in model.buffers()]
    model.load_state_dict(state)
    model.zero_grad()
    model(x).square().sum().backward()
    for gradient, parameter in zip(found, model.parameters(), strict=True):
        torch.testing.assert_close(gradient, parameter.grad, rtol=1e-3, atol=1e-3)
    for actual, expected in zip(running, model.buffers(), strict=True):
        torch.testing.assert_close(actual, expected, rtol=1e-4, atol=1e-4)
    left = {each.operator for graph in graphs for each in graph.left if not each.is_view}
    assert left <= {"aten.add.Tensor"}  # of the count of batches, alone on the host


@pytest.mark.slow
def test_patches_that_take_too_much_are_torchs_with_the_reason(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(images, "_MOST_BYTES", 1 << 10)
    x, w = torch.randn(1, 2, 16, 16), torch.randn(2, 2, 3, 3)
    with watching() as graphs, torch.no_grad():
        found = torch.compile(lambda x: F.conv2d(x, w).relu(), backend=opkit)(x)
    torch.testing.assert_close(found, F.conv2d(x, w).relu())
    (left,) = graphs[0].left
    assert left.operator == "aten.convolution.default"
    assert "patches" in left.reason


def dropping(x: Any) -> Any:
    return F.dropout(F.dropout(x * 2, 0.3), 0.5)


@pytest.mark.slow
def test_dropout_draws_anew_and_its_backward_drops_the_same() -> None:
    compiled, x = torch.compile(dropping, backend=opkit), torch.ones(40, 50, requires_grad=True)
    runs = []
    for _ in range(2):
        torch.manual_seed(3)
        first, second = compiled(x), compiled(x)
        x.grad = None
        (first + second).sum().backward()
        torch.testing.assert_close(x.grad, first + second)
        runs.append((first.detach(), second.detach()))
    assert not torch.equal(runs[0][0], runs[0][1])
    assert torch.equal(runs[0][0], runs[1][0])
    assert torch.equal(runs[0][1], runs[1][1])
    assert abs(float((runs[0][0] != 0).float().mean()) - 0.35) < 0.06
    with watching() as graphs, torch.no_grad():
        torch.compile(dropping, backend=opkit)(x)
    assert [left for left in graphs[0].left if not left.is_view] == []


@pytest.mark.slow
def test_a_model_file_that_would_draw_is_refused() -> None:
    model = nn.Sequential(nn.Linear(16, 16), nn.Dropout(0.5)).train()
    whole = torch.export.export(model, (torch.ones(2, 16),))
    with pytest.raises(UsageError, match="draws no random numbers"):
        build(whole, (torch.ones(2, 16),))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16], ids=str)
def test_means_of_parts_of_unequal_sizes_are_kernels(dtype: Any) -> None:
    def pooled(x: Any, y: Any) -> Any:
        sizes = ((7, 4), (9, 1), 1)
        return [F.adaptive_avg_pool2d(x, each) for each in sizes] + [
            F.adaptive_avg_pool3d(y, (3, 5, 2))
        ]

    x, y = torch.randn(2, 5, 30, 33).to(dtype), torch.randn(2, 4, 7, 17, 9).to(dtype)
    x[0, 0, 3, 3], x[1, 2, 3, 20] = float("nan"), float("inf")
    with watching() as graphs:
        found = torch.compile(pooled, backend=opkit, dynamic=False)(x, y)
    limit = {torch.float32: 1e-5, torch.float16: 2e-3}[dtype]
    torch.testing.assert_close(found, pooled(x, y), rtol=limit, atol=limit, equal_nan=True)
    assert not graphs[0].left


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16], ids=str)
def test_windows_along_three_axes_are_kernels(dtype: Any) -> None:
    def pooled(x: Any) -> Any:
        return (
            *F.max_pool3d(x, (2, 3, 2), (2, 1, 2), (1, 1, 0), return_indices=True),
            *F.max_pool3d(x[0], 3, dilation=(1, 2, 1), ceil_mode=True, return_indices=True),
            F.avg_pool3d(x.float(), (2, 3, 2), 2, (1, 1, 0), count_include_pad=False),
        )

    # Equal elements, and what is no number, decide which of a window's places is given.
    x = torch.randint(-4, 4, (2, 3, 5, 9, 8)).to(dtype)
    x[0, 1, 2, 3, 4], x[1, 0, 0, 0, 0] = float("nan"), float("-inf")
    with watching() as graphs:
        found = torch.compile(pooled, backend=opkit, dynamic=False)(x)
    for mine, expected in zip(found, pooled(x), strict=True):
        torch.testing.assert_close(mine, expected, rtol=2e-3, atol=2e-3, equal_nan=True)
    assert not [left for left in graphs[0].left if not left.is_view]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("name", ROUNDED_ONCE)
def test_a_bias_is_added_before_sums_are_rounded(name: str, dtype: str) -> None:
    function, shapes = ROUNDED_ONCE[name]
    given = [(torch.rand(shape) - 0.5).to(getattr(torch, dtype)) for shape in shapes]
    with watching() as graphs:
        compiled = torch.compile(function, backend=opkit)(*given)
    assert [left for graph in graphs for left in graph.left if not left.is_view] == []
    right = function(*(each.double() for each in given)).to(compiled.dtype)
    # What float32 adds up may lie on the other side of a tie; a second rounding moves a quarter.
    assert (compiled != right).float().mean() < 0.01
