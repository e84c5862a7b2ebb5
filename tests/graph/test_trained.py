"""Models trained with torch's fake-quantisation, compiled and as int8 files."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402
from torch.ao import quantization  # noqa: E402

from opkit import graph  # noqa: E402
from opkit.graph.backend import opkit, watching  # noqa: E402


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """torch says that these modules will move to another package."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        warnings.simplefilter("ignore", UserWarning)
        yield


def rounding(scheme: Any, dtype: Any = torch.qint8) -> Any:
    low, high = (0, 255) if dtype == torch.quint8 else (-128, 127)
    is_wide = scheme in (torch.per_channel_symmetric, torch.per_channel_affine)
    observer = (
        quantization.MovingAveragePerChannelMinMaxObserver
        if is_wide
        else quantization.MovingAverageMinMaxObserver
    )
    return quantization.FakeQuantize(
        observer, quant_min=low, quant_max=high, dtype=dtype, qscheme=scheme
    )


class Trained(nn.Module):
    """Two linear layers as a program for training writes them: both sides of each rounded."""

    def __init__(self) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(32, 48), nn.Linear(48, 8)
        self.given = rounding(torch.per_tensor_affine, torch.quint8)
        self.between = rounding(torch.per_tensor_symmetric)
        self.weights = nn.ModuleList(rounding(torch.per_channel_symmetric) for _ in range(2))

    def forward(self, x: Any) -> Any:
        x = nn.functional.linear(self.given(x), self.weights[0](self.up.weight), self.up.bias)
        x = self.between(torch.relu(x))
        return nn.functional.linear(x, self.weights[1](self.down.weight), self.down.bias)


def train(model: Any, call: Any) -> list[float]:
    torch.manual_seed(1)
    x = torch.randn(64, 32) + 1.0
    wanted = torch.tanh(x[:, :8] * x[:, 8:16])
    steps = torch.optim.SGD(model.parameters(), lr=0.1)
    losses = []
    for _ in range(4):
        steps.zero_grad()
        loss = (call(x) - wanted).square().mean()
        loss.backward()
        steps.step()
        losses.append(float(loss))
    return losses


@pytest.fixture(scope="module")
def trained() -> Any:
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = Trained()
        train(model, model)
    return model.eval().apply(quantization.disable_observer)


@pytest.mark.slow
def test_training_with_fake_quantisation_compiles_and_learns_the_same() -> None:
    torch.manual_seed(0)
    model, alone = Trained(), Trained()
    alone.load_state_dict(model.state_dict())
    with watching() as graphs:
        found = train(model, torch.compile(model, backend=opkit))
    assert any(graph.segments for graph in graphs)
    np.testing.assert_allclose(found, train(alone, alone), rtol=1e-5)
    assert found[-1] < found[0]


def test_fake_quantisation_inside_of_a_graph_is_kernels_with_its_gradient() -> None:
    x = torch.linspace(-3, 3, 256).reshape(8, 32)
    scale, zero = torch.tensor(0.02), torch.tensor(-3, dtype=torch.int32)
    scales, zeros = torch.linspace(0.01, 0.03, 8), torch.arange(8, dtype=torch.int32)

    def program(x: Any) -> Any:
        a = torch.fake_quantize_per_tensor_affine(x, 0.011, 3, -128, 127)
        b = torch.fake_quantize_per_tensor_affine(x * 2, scale, zero, 0, 255)
        return a + b * torch.fake_quantize_per_channel_affine(x, scales, zeros, 0, -128, 127)

    results = []
    for call in (program, torch.compile(program, backend=opkit, fullgraph=True)):
        given = x.clone().requires_grad_()
        with watching() as graphs:
            y = call(given)
            y.sum().backward()
        results.append((y.detach(), given.grad))
    assert not [left for graph in graphs for left in graph.left if not left.is_view]
    for one, other in zip(*results, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-6, atol=1e-6)


def test_a_trained_model_becomes_int8_with_its_own_scales(trained: Any) -> None:
    torch.manual_seed(2)
    x = (torch.randn(16, 32) + 1.0).half().float()
    with torch.no_grad():
        wanted = trained(x).numpy()
    built = graph.build(trained, (x,), precision="int8")
    assert [note["scale"] for note in built.notes] == [
        pytest.approx(float(each.scale)) for each in (trained.given, trained.between)
    ]
    assert sorted(str(array.dtype) for array in built.constants).count("int8") == 2
    (found,) = built.create_context().run([x.numpy()])
    # What lies between two levels may become the other one in float16: few of the 48 that a result
    # adds up.
    level = float(trained.between.scale) * float(trained.down.weight.detach().abs().max())
    assert abs(found - wanted).max() < 4 * level
    assert abs(found - wanted).mean() < level


@pytest.mark.slow
def test_a_trained_model_builds_in_fractions_too(trained: Any) -> None:
    x = torch.linspace(-2, 3, 512).reshape(16, 32)
    with torch.no_grad():
        wanted = trained(x).numpy()
    built = graph.build(trained, (x,), precision="float32")
    np.testing.assert_allclose(built.create_context().run([x.numpy()])[0], wanted, atol=1e-4)


class TrainedImages(nn.Module):
    """A convolution with a frame, whose images have another zero than 0, as training writes it."""

    def __init__(self) -> None:
        super().__init__()
        self.taps = nn.Conv2d(32, 16, 3, padding=1)
        self.given = rounding(torch.per_tensor_affine, torch.quint8)
        self.weight = rounding(torch.per_channel_symmetric)

    def forward(self, x: Any) -> Any:
        weight = self.weight(self.taps.weight)
        return nn.functional.conv2d(self.given(x), weight, self.taps.bias, padding=1)


@pytest.mark.slow
def test_a_trained_convolution_keeps_its_scales_for_each_channel() -> None:
    torch.manual_seed(0)
    model = TrainedImages()
    with torch.no_grad():  # kernels of very different sizes
        model.taps.weight *= torch.logspace(-2, 0, 16).reshape(-1, 1, 1, 1)
    x = torch.randn(1, 32, 6, 5) * 2 + 1.5
    model(x)
    model = model.eval().apply(quantization.disable_observer)
    with torch.no_grad():
        wanted = model(x).numpy()
    built = graph.build(model, (x,), precision="int8")
    assert [note["scale"] for note in built.notes] == [pytest.approx(float(model.given.scale))]
    assert model.given.zero_point != 0
    (levels,) = [array for array in built.constants if array.dtype == np.int8]
    weight = model.taps.weight.detach().permute(0, 2, 3, 1).reshape(16, -1)
    scales = model.weight.scale.reshape(-1, 1)
    np.testing.assert_allclose(levels, torch.round(weight / scales).numpy(), atol=1)
    # The file's weights were float16 before, which turns some over.
    assert (levels == torch.round(weight / scales).numpy()).mean() > 0.97
    (found,) = built.create_context().run([x.numpy()])
    errors = abs(found - wanted).max(axis=(0, 2, 3)) / abs(wanted).max(axis=(0, 2, 3))
    assert errors.max() < 5e-3
