"""Small architectures of tables, graphs and recommendation, and recurrent ones, in plain torch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

__all__ = ["OWN"]

Made = tuple[nn.Module, dict[str, Any]]


class Dlrm(nn.Module):
    """Bags of categories and numbers, their products of pairs, a perceptron."""

    def __init__(self) -> None:
        super().__init__()
        self.bags = nn.ModuleList(nn.EmbeddingBag(50, 8, mode=m) for m in ("sum", "mean", "max"))
        self.bottom = nn.Sequential(nn.Linear(5, 16), nn.ReLU(), nn.Linear(16, 8), nn.ReLU())
        self.top = nn.Sequential(nn.Linear(14, 16), nn.ReLU(), nn.Linear(16, 1))

    def forward(self, numbers: Any, categories: Any, offsets: Any) -> Any:
        dense = self.bottom(numbers)
        parts = [dense, *(bag(categories, offsets) for bag in self.bags)]
        stacked = torch.stack(parts, 1)
        products = torch.bmm(stacked, stacked.transpose(1, 2))
        row, column = torch.tril_indices(4, 4, -1, device=products.device)
        return torch.sigmoid(self.top(torch.cat([dense, products[:, row, column]], 1)))


class DeepFm(nn.Module):
    """A factorization machine beside a perceptron, over fields of categories."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Embedding(100, 1), nn.Embedding(100, 8)
        self.deep = nn.Sequential(
            nn.Linear(48, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 1)
        )

    def forward(self, fields: Any) -> Any:
        e = self.second(fields)
        pairs = 0.5 * (e.sum(1).square() - e.square().sum(1)).sum(1, keepdim=True)
        return self.first(fields).sum(1) + pairs + self.deep(e.flatten(1))


class GraphConvolution(nn.Module):
    """Two rounds of means over the edges that come in."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(8, 16), nn.Linear(16, 4)])

    def forward(self, x: Any, edges: Any) -> Any:
        source, target = edges
        degree = x.new_zeros(len(x)).index_add(0, target, torch.ones_like(x[source, 0]))
        scale = degree.clamp(min=1).rsqrt()
        for layer in self.layers:
            sent = layer(x)[source] * (scale[source] * scale[target])[:, None]
            x = sent.new_zeros(len(x), sent.shape[1]).index_add(0, target, sent)
            x = F.elu(x)
        return F.log_softmax(x, -1)


class GraphAttention(nn.Module):
    """Weights of the edges by a softmax over those that come in."""

    def __init__(self) -> None:
        super().__init__()
        self.project, self.score = nn.Linear(8, 12), nn.Parameter(torch.randn(24) / 5)

    def forward(self, x: Any, edges: Any) -> Any:
        source, target = edges
        h = self.project(x)
        e = F.leaky_relu(torch.cat([h[source], h[target]], 1) @ self.score, 0.2)
        most = e.new_full((len(x),), -1e9).scatter_reduce(0, target, e, "amax")
        w = (e - most[target]).exp()
        total = w.new_zeros(len(x)).index_add(0, target, w)
        sent = h[source] * (w / total[target])[:, None]
        return sent.new_zeros(h.shape).scatter_add(0, target[:, None].expand_as(sent), sent)


class TableTransformer(nn.Module):
    """Columns as tokens: those of categories embedded, those of numbers scaled."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(30, 16)
        self.scale, self.shift = (nn.Parameter(torch.randn(4, 16) / 4) for _ in range(2))
        layer = nn.TransformerEncoderLayer(16, 4, 32, 0.0, "gelu", batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(16, 3)

    def forward(self, numbers: Any, categories: Any) -> Any:
        columns = numbers[..., None] * self.scale + self.shift
        return self.head(self.encoder(torch.cat([self.words(categories), columns], 1)).mean(1))


class Recurrent(nn.Module):
    """A recurrent network of PyTorch over words, both ways."""

    def __init__(self, kind: type[nn.RNNBase]) -> None:
        super().__init__()
        self.words = nn.Embedding(30, 16)
        self.cells = kind(16, 12, 2, batch_first=True, bidirectional=True)
        self.head = nn.Linear(24, 30)

    def forward(self, words: Any) -> Any:
        return self.head(self.cells(self.words(words))[0])


def _graph() -> dict[str, Any]:
    return {"x": torch.randn(20, 8), "edges": torch.randint(0, 20, (2, 60))}


def _recurrent(kind: type[nn.RNNBase]) -> Callable[[], Made]:
    return lambda: (Recurrent(kind), {"words": torch.randint(0, 30, (3, 10))})


OWN: dict[str, dict[str, Callable[[], Made]]] = {
    "tables": {
        "DLRM": lambda: (
            Dlrm(),
            {
                "numbers": torch.randn(4, 5),
                "categories": torch.randint(0, 50, (14,)),
                "offsets": torch.tensor([0, 3, 7, 9]),
            },
        ),
        "DeepFM": lambda: (DeepFm(), {"fields": torch.randint(0, 100, (8, 6))}),
        "GCN": lambda: (GraphConvolution(), _graph()),
        "GAT": lambda: (GraphAttention(), _graph()),
        "FT-Transformer": lambda: (
            TableTransformer(),
            {"numbers": torch.randn(6, 4), "categories": torch.randint(0, 30, (6, 3))},
        ),
    },
    "recurrent": {"LSTM": _recurrent(nn.LSTM), "GRU": _recurrent(nn.GRU)},
}
