"""Networks layer by layer: the first that deviates is named, forward and backward."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from opkit.errors import UsageError  # noqa: E402
from opkit.torch_bridge import PrecisionDebugger  # noqa: E402

pytestmark = pytest.mark.torch


class Scaled(torch.autograd.Function):
    """x, and a gradient, each times a factor: what a wrong kernel might do."""

    @staticmethod
    def forward(ctx: Any, x: Any, forward: float, backward: float) -> Any:
        ctx.factor = backward
        return x * forward

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        return gradient * ctx.factor, None, None


class Gelu(torch.nn.Module):
    def __init__(self, forward: float = 1.0, backward: float = 1.0) -> None:
        super().__init__()
        self.factors = forward, backward

    def forward(self, x: Any) -> Any:
        return Scaled.apply(torch.nn.functional.gelu(x), *self.factors)


def network(*middle: float) -> Any:
    torch.manual_seed(0)
    return torch.nn.Sequential(
        torch.nn.Linear(8, 16),
        Gelu(),
        torch.nn.Linear(16, 16),
        Gelu(*middle),
        torch.nn.Linear(16, 4),
    )


@pytest.fixture
def x() -> Any:
    return torch.linspace(-2, 2, 24).reshape(3, 8).requires_grad_()


def test_equal_networks_do_not_deviate(x: Any) -> None:
    report = PrecisionDebugger(network(), network()).compare(x)
    assert report.passed
    stages = {result.stage for result in report.results}
    assert stages == {"forward", "backward", "parameter"}
    assert "no layer deviates by the ecosystem standard" in str(report)


def test_the_first_layer_that_deviates_forward_is_named(x: Any) -> None:
    report = PrecisionDebugger(network(1.01), network()).compare(x)
    assert report.first is not None
    assert (report.first.layer, report.first.kind, report.first.stage) == ("3", "Gelu", "forward")
    assert not report.passed
    assert "the first to deviate: 3 (Gelu), forward" in str(report)
    assert "worst at [" in str(report)


def test_the_first_layer_that_deviates_backward_is_named(x: Any) -> None:
    report = PrecisionDebugger(network(1.0, 1.01), network()).compare(x)
    assert report.first is not None
    assert (report.first.layer, report.first.stage) == ("3", "backward")
    wrong = [result.layer for result in report.results if not result.passed]
    assert "4" not in wrong and "0" in wrong


def test_lower_precision_is_judged_by_its_own_limits(x: Any) -> None:
    for dtype in (torch.bfloat16, torch.float16):
        model = network().to(dtype)
        report = PrecisionDebugger(model, network(), standard="mixed").compare(x.to(dtype).detach())
        assert {r.comparison.dtype for r in report.results if r.comparison} == {
            str(dtype).removeprefix("torch.")
        }
        assert report.results[0].passed


def test_a_layer_that_runs_twice_is_told_apart(x: Any) -> None:
    class Twice(torch.nn.Module):
        def __init__(self, factor: float) -> None:
            super().__init__()
            self.step = Gelu()
            self.factor = factor

        def forward(self, x: Any) -> Any:
            return self.step(self.step(x) * self.factor)

    report = PrecisionDebugger(Twice(1.01), Twice(1.0)).compare(x)
    assert report.first is not None and report.first.layer == "step#2"


def test_dumps_are_compared_later(x: Any, tmp_path: Path) -> None:
    debugger = PrecisionDebugger(network(1.01), network())
    with pytest.raises(UsageError, match="nothing has run yet"):
        debugger.dump(tmp_path / "run.npz")
    report = debugger.compare(x)
    debugger.dump(tmp_path / "run.npz")
    debugger.dump_reference(tmp_path / "right.npz")
    later = PrecisionDebugger.compare_dumps(tmp_path / "run.npz", tmp_path / "right.npz")
    assert later == report
    assert {path.name for path in tmp_path.iterdir()} == {"run.npz", "right.npz"}
    (tmp_path / "bad.npz").write_text("nothing")
    with pytest.raises(UsageError, match="is no recording"):
        PrecisionDebugger.compare_dumps(tmp_path / "bad.npz", tmp_path / "right.npz")


def test_networks_must_have_the_same_parameters(x: Any) -> None:
    with pytest.raises(UsageError, match="other parameters"):
        PrecisionDebugger(network(), torch.nn.Linear(3, 3))


def test_the_models_gradients_and_hooks_are_left_clean(x: Any) -> None:
    model = network()
    PrecisionDebugger(model, network()).compare(x)
    assert not any(module._forward_hooks for module in model.modules())
