"""Convolutions of model files: channels last, norms in their weights, in fractions and in int8."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

from opkit import graph  # noqa: E402
from opkit.graph.calibration import Quantisation, Seen, calibrated, levels_for  # noqa: E402
from opkit.graph.channels_last import channels_last, fold_norms, kernels_of  # noqa: E402
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


def test_calibration_sees_the_mean_of_a_convolutions_patches(model: Any) -> None:
    """By which the mean of what rounded weights lose is known."""
    whole = exported(model, (X,), torch.float32)
    nodes = [node for node in whole.work() if kernels_of(whole, node) is not None]
    assert len(nodes) == 3
    values = run(whole, [X])
    for node, seen in calibrated(whole, nodes, [[X], [X * 0.5]]).items():
        weights, bias = kernels_of(whole, node), whole.constants.get(node.args[2])
        half = run(whole, [X * 0.5])[node]
        wanted = torch.cat([values[node], half]).double().mean((0, 2, 3))
        found = torch.from_numpy(seen.total / seen.rows) @ weights.double().T
        torch.testing.assert_close(found + (0 if bias is None else bias), wanted, atol=1e-5, rtol=0)


def test_what_lies_on_one_side_of_zero_has_all_levels_there() -> None:
    how = Quantisation()
    behind_relu = levels_for(Seen(0.0, 5.1), how)
    assert (float(behind_relu.scale), behind_relu.zero, behind_relu.shift) == (
        pytest.approx(0.02),
        0,
        -128,
    )
    behind_gelu = levels_for(Seen(-0.16, 4.94), how)
    assert (float(behind_gelu.scale), behind_gelu.zero) == (pytest.approx(0.02), 8)
    around = levels_for(Seen(-2.0, 2.54), how)
    assert (float(around.scale), around.zero, around.shift) == (pytest.approx(0.02), 0, 0)


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
    assert np.linalg.norm(found - wanted) < 0.015 * np.linalg.norm(wanted)
