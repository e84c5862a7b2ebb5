"""Layers and models of the graph benchmarks, with random weights."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import nn

__all__ = ["BertLayer", "LlamaLayer", "Resnet", "llama_operations"]


class BertLayer(nn.Module):
    """A layer of BERT: attention, two products, two norms."""

    def __init__(self, width: int, heads: int, inner: int) -> None:
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value = (nn.Linear(width, width) for _ in range(3))
        self.out = nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, inner), nn.Linear(inner, width)
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape

        def heads(y: torch.Tensor) -> torch.Tensor:
            return y.view(batch, length, self.heads, -1).transpose(1, 2)

        parts = heads(self.query(x)), heads(self.key(x)), heads(self.value(x))
        seen = nn.functional.scaled_dot_product_attention(*parts)
        x = self.first(x + self.out(seen.transpose(1, 2).reshape(batch, length, width)))
        return self.second(x + self.down(nn.functional.gelu(self.up(x))))


class LlamaLayer(nn.Module):
    """A layer of Llama: norms by the root of the mean square, rotary places, causal attention, a
    gated activation."""

    def __init__(self, width: int, heads: int, inner: int) -> None:
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value, self.out = (
            nn.Linear(width, width, bias=False) for _ in range(4)
        )
        self.gate, self.up = (nn.Linear(width, inner, bias=False) for _ in range(2))
        self.down = nn.Linear(inner, width, bias=False)
        self.first, self.second = (nn.Parameter(torch.ones(width)) for _ in range(2))

    def forward(self, x: torch.Tensor, cosine: torch.Tensor, sine: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape

        def heads(y: torch.Tensor) -> torch.Tensor:
            return y.view(batch, length, self.heads, -1).transpose(1, 2)

        def turned(y: torch.Tensor) -> torch.Tensor:
            left, right = y.chunk(2, -1)
            return y * cosine + torch.cat((-right, left), -1) * sine

        y = self._norm(x, self.first)
        parts = turned(heads(self.query(y))), turned(heads(self.key(y))), heads(self.value(y))
        seen = nn.functional.scaled_dot_product_attention(*parts, is_causal=True)
        x = x + self.out(seen.transpose(1, 2).reshape(batch, length, width))
        y = self._norm(x, self.second)
        return x + self.down(nn.functional.silu(self.gate(y)) * self.up(y))

    @staticmethod
    def _norm(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        wide = x.float()
        return weight * (wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + 1e-5)).to(
            x.dtype
        )


def llama_operations(width: int, inner: int, length: int) -> int:
    """Return what a layer's products multiply and add, each counted as one operation; of attention
    the half that a causal mask leaves."""
    weights = 4 * width * width + 3 * width * inner
    return 2 * length * weights + 2 * length * length * width


class Resnet(nn.Module):
    """A residual network of bottleneck blocks; with (3, 4, 6, 3) blocks of 64 channels it has the
    shape of resnet50."""

    def __init__(
        self, counts: Sequence[int] = (3, 4, 6, 3), width: int = 64, classes: int = 1000
    ) -> None:
        super().__init__()
        self.head = nn.Sequential(*_convolved(3, width, 7, 2), nn.ReLU(), nn.MaxPool2d(3, 2, 1))
        blocks: list[nn.Module] = []
        channels = width
        for level, count in enumerate(counts):
            for index in range(count):
                step = 2 if index == 0 and level > 0 else 1
                blocks.append(Bottleneck(channels, width << level, step))
                channels = 4 * (width << level)
        self.blocks = nn.Sequential(*blocks)
        self.out = nn.Linear(channels, classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.out(self.blocks(self.head(x)).mean((2, 3)))


class Bottleneck(nn.Module):
    """Three convolutions with norms, added to what they read."""

    def __init__(self, channels: int, width: int, step: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            *_convolved(channels, width, 1),
            nn.ReLU(),
            *_convolved(width, width, 3, step),
            nn.ReLU(),
            *_convolved(width, 4 * width, 1),
        )
        self.side: nn.Module = nn.Identity()
        if step > 1 or channels != 4 * width:
            self.side = nn.Sequential(*_convolved(channels, 4 * width, 1, step))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.body(x) + self.side(x))


def _convolved(channels: int, outputs: int, side: int, step: int = 1) -> tuple[nn.Module, ...]:
    convolution = nn.Conv2d(channels, outputs, side, step, side // 2, bias=False)
    return convolution, nn.BatchNorm2d(outputs)
