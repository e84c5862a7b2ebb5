"""Recurrent layers are compiled, step by step."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

from opkit.graph.backend import opkit, watching  # noqa: E402

pytestmark = [pytest.mark.torch, pytest.mark.slow]


@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        (nn.GRU, {"batch_first": True}),
        (nn.LSTM, {"num_layers": 2}),
        (nn.GRU, {"bidirectional": True, "bias": False}),
        (nn.RNN, {"nonlinearity": "relu"}),
    ],
)
def test_a_sequence_is_compiled(kind: Any, settings: dict[str, Any]) -> None:
    torch.manual_seed(1)
    layer, x = kind(12, 20, **settings), torch.randn(3, 4, 12)
    torch._dynamo.reset()
    # What the CPU has for all of a sequence is no operator of the device.
    whole = torch.backends.mkldnn.flags(enabled=False)
    with watching() as graphs, torch.no_grad(), whole:
        actual, _ = torch.compile(layer, backend=opkit)(x)
    torch.testing.assert_close(actual, layer(x)[0], rtol=1e-4, atol=1e-4)
    assert [left for graph in graphs for left in graph.left if not left.is_view] == []


def test_a_sequence_trains() -> None:
    torch.manual_seed(2)
    layer, x = nn.GRU(8, 8), torch.randn(3, 2, 8)
    torch._dynamo.reset()
    torch.compile(layer, backend=opkit)(x)[0].square().sum().backward()
    found = [parameter.grad.clone() for parameter in layer.parameters()]
    layer.zero_grad()
    layer(x)[0].square().sum().backward()
    for gradient, parameter in zip(found, layer.parameters(), strict=True):
        torch.testing.assert_close(gradient, parameter.grad, rtol=1e-3, atol=1e-4)
