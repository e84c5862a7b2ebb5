"""`torch.npu.amp`, as programs written for torch_npu use it."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")


def test_autocast_multiplies_in_float16() -> None:
    x = torch.ones(2, 2, device="npu")
    with torch.npu.amp.autocast():
        assert (x @ x).dtype == torch.float16
    with torch.npu.amp.autocast(dtype=torch.bfloat16):
        assert (x @ x).dtype == torch.bfloat16
    with torch.npu.amp.autocast(enabled=False):
        assert (x @ x).dtype == torch.float32


@pytest.mark.parametrize(("dynamic", "after"), [(True, 2.0), (False, 4.0)])
def test_a_scale_follows_overflows_where_it_is_dynamic(dynamic: bool, after: float) -> None:
    weight = torch.ones(2, device="npu", requires_grad=True)
    scaler = torch.npu.amp.GradScaler(init_scale=4.0, dynamic=dynamic)
    optimizer = torch.optim.SGD([weight], lr=1.0)
    scaler.scale((weight * float("inf")).sum()).backward()
    scaler.step(optimizer)
    scaler.update()
    assert scaler.get_scale() == after
    assert torch.equal(weight.detach().cpu(), torch.ones(2))
