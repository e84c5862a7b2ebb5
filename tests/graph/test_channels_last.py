"""Convolutions of model files: channels last, norms in their weights, in fractions and in int8."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

from opkit import graph  # noqa: E402
from opkit.graph.channels_last import channels_last, fold_norms  # noqa: E402
from opkit.graph.export import exported, run  # noqa: E402


class Images(nn.Module):
    """Patches, a block with steps and a way past it, groups, and a mean."""

    def __init__(self) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, 32, 2, 2)
        self.first = nn.Conv2d(32, 32, 3, 2, 1, bias=False)
        self.norm = nn.BatchNorm2d(32)
        self.past = nn.Conv2d(32, 32, 1, 2)
        self.wide = nn.Conv2d(32, 32, 3, padding=2, dilation=2, groups=2)
        self.out = nn.Linear(32, 8)

    def forward(self, x: Any) -> Any:
        x = torch.relu(self.patches(x))
        x = torch.relu(self.norm(self.first(x)) + self.past(x))
        return self.out(self.wide(x).mean((2, 3)))


@pytest.fixture(scope="module")
def model() -> Any:
    torch.manual_seed(0)
    made = Images()
    with torch.no_grad():
        for _ in range(3):  # means and variances that are not those of the beginning
            made(torch.randn(4, 3, 18, 16) * 2 + 1)
    return made.eval()


X = torch.linspace(-3, 3, 2 * 3 * 18 * 16).reshape(2, 3, 18, 16).sin()


def expected(model: Any) -> Any:
    with torch.no_grad():
        return model(X).numpy()


def test_a_norm_goes_into_the_weights_before_it(model: Any) -> None:
    whole = exported(model, (X,), torch.float32)
    fold_norms(whole)
    names = [str(node.target) for node in whole.work()]
    assert not [name for name in names if "batch_norm" in name]
    values = run(whole, [X])
    (output,) = whole.outputs
    np.testing.assert_allclose(values[output].numpy(), expected(model), atol=1e-5)
    # All but the one of groups.
    assert len(channels_last(whole)) == names.count("aten.convolution.default") - 1 == 3


@pytest.mark.slow
@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_a_model_of_convolutions_is_torchs(model: Any, precision: str) -> None:
    built = graph.build(model, (X,), precision=precision)
    (found,) = built.create_context().run([X.numpy()])
    wanted = expected(model)
    error = abs(found - wanted).max() / abs(wanted).max()
    assert error < (1e-5 if precision == "float32" else 3e-2)


@pytest.mark.slow
def test_convolutions_in_int8_stay_near_and_keep_their_weights_as_int8(model: Any) -> None:
    built = graph.build(model, (X,), precision="int8", calibration=[(X,)])
    assert [note["operator"] for note in built.notes].count("aten.convolution.default") == 2
    assert sum(array.dtype == np.int8 for array in built.constants) == 3
    (found,) = built.create_context().run([X.numpy()])
    wanted = expected(model)
    assert np.linalg.norm(found - wanted) < 0.03 * np.linalg.norm(wanted)
