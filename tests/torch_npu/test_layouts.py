"""Results lie as PyTorch's own functions leave them: by channels where their operands do, and in
the order of operands that are turned. They were packed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch.nn import functional  # noqa: E402

pytestmark = pytest.mark.torch

WEIGHT = torch.randn(8, 8, 3, 3, generator=torch.Generator().manual_seed(0))
BY_CHANNEL = WEIGHT.contiguous(memory_format=torch.channels_last)

CALLS: dict[str, Callable[[Any], Any]] = {
    "conv": lambda x: functional.conv2d(x, WEIGHT.to(x.device)),
    "conv by its weight": lambda x: functional.conv2d(x.contiguous(), BY_CHANNEL.to(x.device)),
    "conv by groups": lambda x: functional.conv2d(x, WEIGHT[:, :1].to(x.device), groups=8),
    "transposed": lambda x: functional.conv_transpose2d(x, WEIGHT.to(x.device)),
    "batch norm": lambda x: functional.batch_norm(x, None, None, training=True),
    "adaptive": lambda x: functional.adaptive_avg_pool2d(x, 3),
    "adaptive, uneven": lambda x: functional.adaptive_avg_pool2d(x, 4),
    "reflected": lambda x: functional.pad(x, (1, 1, 1, 1), mode="reflect"),
    "flip": lambda x: x.flip(2),
    "roll": lambda x: x.roll(1, 2),
    "log sigmoid": functional.logsigmoid,
    "where": lambda x: torch.where(x > 0, x, 0),
    "prelu": lambda x: functional.prelu(x, torch.ones(8).to(x.device)),
    "max pool": lambda x: functional.max_pool2d(x, 2),
    "sum of both": lambda x: x.contiguous() + x,
}


def _strides(x: Any) -> list[int]:
    return [stride for stride, size in zip(x.stride(), x.shape, strict=True) if size > 1]


@pytest.mark.parametrize("name", CALLS)
def test_channels_stay_last(name: str) -> None:
    x = torch.randn(2, 8, 6, 6, generator=torch.Generator().manual_seed(1))
    x = x.contiguous(memory_format=torch.channels_last)
    here, there = x.requires_grad_(), x.detach().npu().requires_grad_()
    wanted, given = CALLS[name](here), CALLS[name](there)
    assert _strides(given) == _strides(wanted)
    torch.testing.assert_close(given.cpu(), wanted, atol=1e-4, rtol=1e-4)
    for is_last in (False, True):
        g = torch.ones_like(wanted).contiguous()
        g = g.contiguous(memory_format=torch.channels_last) if is_last else g
        (back,) = torch.autograd.grad(wanted, here, g, retain_graph=True)
        (came,) = torch.autograd.grad(given, there, g.npu(), retain_graph=True)
        assert _strides(came) == _strides(back)
        torch.testing.assert_close(came.cpu(), back, atol=1e-4, rtol=1e-4)


def test_channels_of_volumes_stay_last() -> None:
    x = torch.randn(2, 8, 4, 4, 4).contiguous(memory_format=torch.channels_last_3d)
    weight = torch.ones(8, 8, 2, 2, 2)
    for call in (
        lambda x: functional.conv3d(x, weight.to(x.device)),
        lambda x: functional.batch_norm(x, None, None, training=True),
        lambda x: functional.group_norm(x, 2),
    ):
        assert _strides(call(x.npu())) == _strides(call(x))


@pytest.mark.parametrize("dtype", ["float32", "float16", "int32"])
def test_elements_of_turned_operands_stay_in_their_order(dtype: str) -> None:
    x = torch.arange(1, 61).view(3, 4, 5).to(getattr(torch, dtype))
    for a, b in ((x.permute(2, 0, 1), x.reshape(5, 3, 4)), (x.permute(1, 0, 2), x.view(4, 3, 5))):
        for call in (torch.add, torch.sub, torch.floor_divide, torch.maximum):
            wanted, given = call(a, b), call(a.npu(), b.npu())
            assert given.stride() == wanted.stride()
            assert torch.equal(given.cpu(), wanted)
        assert a.npu().flip(0).stride() == a.flip(0).stride()
