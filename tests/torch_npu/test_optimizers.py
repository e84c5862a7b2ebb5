"""Fused optimizers and the gradient scaler's operators, against the CPU's."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

TOLERANCE = {torch.float32: 1e-5, torch.float16: 2e-3, torch.bfloat16: 2e-2}
OPTIMIZERS: list[tuple[str, dict[str, Any]]] = [
    ("AdamW", {}),
    ("AdamW", {"amsgrad": True, "lr": torch.tensor(0.01)}),
    ("Adam", {"weight_decay": 0.1, "amsgrad": True}),
    ("Adam", {"maximize": True}),
    ("SGD", {"lr": 0.01}),
    ("SGD", {"lr": 0.01, "momentum": 0.9, "nesterov": True, "weight_decay": 0.1}),
    ("SGD", {"lr": 0.01, "momentum": 0.9, "dampening": 0.2, "maximize": True}),
    ("Adagrad", {"lr_decay": 0.1, "weight_decay": 0.1}),
]


def trained(name: str, options: dict[str, Any], dtype: torch.dtype, device: str) -> list[Any]:
    """Parameters and the scale after steps; float32's are scaled, and the third overflows."""
    generator = torch.Generator().manual_seed(0)
    values = [torch.randn(shape, generator=generator) for shape in ((5, 7), (1,), (30, 90))]
    parameters = [value.clone().to(device, dtype).requires_grad_() for value in values]
    # The gradient with respect to a transposed weight is transposed too.
    parameters.append(values[0].clone().t().to(device, dtype).requires_grad_())
    # The CPU's own fused SGD steps half types wrongly (torch 2.13): its loop is right.
    optimizer = getattr(torch.optim, name)(
        parameters, fused=device == "npu" or name != "SGD", **options
    )
    scaler = torch.amp.GradScaler(
        device, init_scale=8.0, growth_interval=2, enabled=dtype == torch.float32
    )
    for step in range(5):
        optimizer.zero_grad()
        loss = torch.stack([p.float().square().mean() for p in parameters]).sum()
        scaler.scale(loss).backward()
        if step == 2 and scaler.is_enabled():
            parameters[1].grad.fill_(float("inf"))
        scaler.step(optimizer)
        scaler.update()
    return [*(p.detach().float().cpu() for p in parameters), scaler.get_scale()]


@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
@pytest.mark.parametrize(("name", "options"), OPTIMIZERS, ids=lambda x: str(x)[:60])
def test_a_fused_optimizer_steps_by_kernels_as_on_the_cpu(
    name: str, options: dict[str, Any], dtype: torch.dtype
) -> None:
    expected = trained(name, options, dtype, "cpu")
    torch.npu.reset_fallbacks()
    found = trained(name, options, dtype, "npu")
    assert [row for row in torch.npu.fallbacks() if "fused" in row.operator] == []
    assert [row for row in torch.npu.fallbacks() if "_amp_" in row.operator] == []
    tolerance = TOLERANCE[dtype]
    torch.testing.assert_close(found, expected, rtol=tolerance, atol=tolerance)


def test_what_lies_otherwise_than_its_gradient_is_stepped_on_the_cpu() -> None:
    weight = torch.ones(3, 4, device="npu").requires_grad_()
    weight.grad = torch.ones(4, 3, device="npu").t()
    torch.npu.reset_fallbacks()
    torch.optim.SGD([weight], lr=0.5, fused=True).step()
    assert torch.equal(weight.detach().cpu(), torch.full((3, 4), 0.5))
    assert [row.operator for row in torch.npu.fallbacks()] == ["aten::_fused_sgd_"]


@pytest.mark.parametrize("bad", [float("inf"), float("-inf"), float("nan")])
def test_gradients_are_unscaled_and_what_is_not_finite_is_found(bad: float) -> None:
    good = [torch.full((3, 5), 6.0, device="npu"), torch.full((0,), 1.0, device="npu")]
    found, inverse = torch.zeros(1, device="npu"), torch.full((1,), 0.5, device="npu")
    torch._amp_foreach_non_finite_check_and_unscale_(good, found, inverse)
    assert found.item() == 0
    assert torch.equal(good[0].cpu(), torch.full((3, 5), 3.0))
    torch._amp_foreach_non_finite_check_and_unscale_(
        [good[0], torch.tensor([1.0, bad, 2.0], device="npu").half()], found, inverse
    )
    assert found.item() == 1
    torch._amp_foreach_non_finite_check_and_unscale_(good, found, inverse)
    assert found.item() == 1


def test_a_scale_that_would_leave_float_stays() -> None:
    scale = torch.full((1,), 3e38, device="npu")
    tracker = torch.zeros(1, dtype=torch.int32, device="npu")
    torch._amp_update_scale_(scale, tracker, torch.zeros(1, device="npu"), 2.0, 0.5, 1)
    assert scale.cpu().item() == torch.tensor(3e38).item()
    assert tracker.item() == 0


def test_half_types_are_joined_with_floats_by_kernels() -> None:
    parts = [torch.ones(2, 3).half(), torch.full((2, 2), 0.1), torch.ones(2, 1).bfloat16()]
    expected = torch.cat(parts, 1)
    torch.npu.reset_fallbacks()
    found = torch.cat([part.to("npu") for part in parts], 1)
    assert found.dtype == expected.dtype
    assert torch.equal(found.cpu(), expected)
    assert torch.npu.fallbacks() == []
