"""Small models on `npu` against the CPU: losses of optimizer steps, share of native calls, time.

    python benchmarks/npu_models.py [--steps 20] [--bert]

The models are written here: an encoder as BERT's, a decoder as GPT-2's, one as Llama's (RMS norm,
rotary positions, SwiGLU), a vision transformer. `--bert` times one BERT-base layer in float16.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import torch
from torch import nn
from torch.nn import functional as F


class Attention(nn.Module):
    """Multi-head attention; rotary positions where asked for."""

    def __init__(self, width: int, heads: int, *, causal: bool, rotary: bool = False) -> None:
        super().__init__()
        self.heads, self.causal, self.rotary = heads, causal, rotary
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        parts = self.qkv(x).view(batch, length, 3, self.heads, width // self.heads)
        q, k, v = parts.permute(2, 0, 3, 1, 4)
        if self.rotary:
            q, k = rotate(q), rotate(k)
        scores = q @ k.transpose(-1, -2) / (width // self.heads) ** 0.5
        if self.causal:
            later = torch.ones(length, length, dtype=torch.bool, device=x.device).triu(1)
            scores = scores.masked_fill(later, float("-inf"))
        mixed = scores.softmax(-1) @ v
        return self.out(mixed.transpose(1, 2).reshape(batch, length, width))


def rotate(x: torch.Tensor) -> torch.Tensor:
    half = x.shape[-1] // 2
    rate = 10000.0 ** (-torch.arange(half, device=x.device, dtype=torch.float32) / half)
    angle = torch.arange(x.shape[-2], device=x.device, dtype=torch.float32)[:, None] * rate
    cos, sin = torch.cat([angle.cos()] * 2, -1), torch.cat([angle.sin()] * 2, -1)
    return x * cos + torch.cat([-x[..., half:], x[..., :half]], -1) * sin


class RmsNorm(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * self.weight


class Block(nn.Module):
    def __init__(self, width: int, heads: int, *, causal: bool, llama: bool = False) -> None:
        super().__init__()
        norm: Callable[[int], nn.Module] = RmsNorm if llama else nn.LayerNorm
        self.first, self.second = norm(width), norm(width)
        self.attention = Attention(width, heads, causal=causal, rotary=llama)
        self.llama = llama
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.gate = nn.Linear(width, 4 * width) if llama else nn.Identity()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attention(self.first(x))
        h = self.second(x)
        hidden = F.silu(self.gate(h)) * self.up(h) if self.llama else F.gelu(self.up(h))
        return x + self.down(hidden)


class Language(nn.Module):
    def __init__(self, *, causal: bool, llama: bool = False) -> None:
        super().__init__()
        self.embed = nn.Embedding(100, 64)
        self.blocks = nn.Sequential(*(Block(64, 4, causal=causal, llama=llama) for _ in range(2)))
        self.norm, self.head = nn.LayerNorm(64), nn.Linear(64, 100)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.head(self.norm(self.blocks(self.embed(tokens)))).flatten(0, 1)


class Vision(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.patches = nn.Linear(48, 64)
        self.blocks = nn.Sequential(*(Block(64, 4, causal=False) for _ in range(2)))
        self.head = nn.Linear(64, 10)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        pieces = image.unflatten(2, (-1, 4)).unflatten(4, (-1, 4)).permute(0, 2, 4, 1, 3, 5)
        return self.head(self.blocks(self.patches(pieces.flatten(3).flatten(1, 2))).mean(1))


def losses(
    make: Callable[[], nn.Module],
    inputs: torch.Tensor,
    target: torch.Tensor,
    device: str,
    steps: int,
) -> list[float]:
    torch.manual_seed(0)
    model = make().to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    inputs, target = inputs.to(device), target.to(device)
    found = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(inputs), target)
        loss.backward()
        optimizer.step()
        found.append(loss.item())
    return found


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--bert", action="store_true")
    options = parser.parse_args()
    from opkit.torch_npu.build import kernel_library
    from opkit.torch_npu.native import load

    load().opkit_npu_kernels(str(kernel_library()).encode())
    if options.bert:
        time_bert()
        return
    tokens = torch.randint(0, 100, (2, 16))
    image, label = torch.randn(2, 3, 16, 16), torch.tensor([1, 7])
    models = {
        "BERT": (lambda: Language(causal=False), tokens, tokens.flatten()),
        "GPT-2": (lambda: Language(causal=True), tokens, tokens.flatten()),
        "Llama": (lambda: Language(causal=True, llama=True), tokens, tokens.flatten()),
        "ViT": (Vision, image, label),
    }
    for name, (make, inputs, target) in models.items():
        expected = losses(make, inputs, target, "cpu", options.steps)
        torch.npu.reset_fallbacks()
        actual = losses(make, inputs, target, "npu", options.steps)
        worst = max(abs(a - e) / abs(e) for a, e in zip(actual, expected, strict=True))
        rows = torch.npu.kernel_calls()
        native, cpu = sum(r.native for r in rows), sum(r.fallback for r in rows)
        share = 100 * native / (native + cpu)
        print(f"{name:6} {options.steps} steps: losses within {worst:.1e}; native {share:.1f} %")
        for row in torch.npu.fallbacks()[:8]:
            print(f"       {row.fallback:5} x {row.operator}: {'; '.join(row.reasons)}")


def time_bert() -> None:
    """One layer as BERT-base has it, batch 1 x 128."""
    torch.set_num_threads(1)
    layer = Block(768, 12, causal=False).eval()
    x = torch.randn(1, 128, 768)
    there, y = Block(768, 12, causal=False).eval().half().to("npu"), x.half().to("npu")

    def best(call: Callable[[], object]) -> float:
        times = []
        for _ in range(7):
            begin = time.perf_counter()
            call()
            times.append(time.perf_counter() - begin)
        return min(times) * 1000

    with torch.no_grad():
        host, device = best(lambda: layer(x)), best(lambda: there(y))
    print(f"CPU float32, one thread: {host:.1f} ms; npu float16: {device:.1f} ms")
    print(f"emulated / CPU: {device / host:.2f}")


if __name__ == "__main__":
    main()
