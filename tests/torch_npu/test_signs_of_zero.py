"""Zeros keep the sign that they have on the CPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch.nn import functional  # noqa: E402

pytestmark = pytest.mark.torch

FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    **{name: getattr(torch, name) for name in ("sin", "tan", "tanh", "asin", "atan", "erf")},
    **{name: getattr(torch, name) for name in ("relu", "sign", "sgn", "sinh", "asinh", "expm1")},
    **{name: getattr(functional, name) for name in ("gelu", "silu", "relu6", "leaky_relu", "elu")},
    "clamp from 0": lambda x: x.clamp(min=0),
    "clamp to 0": lambda x: x.clamp(max=0),
}


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_zero_keeps_its_sign(name: str, dtype: str) -> None:
    x = torch.tensor([0.0, -0.0] * 40 + [2.0, -2.0], dtype=getattr(torch, dtype))[:80]
    wanted = FUNCTIONS[name](x)
    given = FUNCTIONS[name](x.npu()).cpu()
    assert torch.equal(given, wanted)
    assert torch.equal(given.signbit(), wanted.signbit())


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_quotients_rounded_down_to_zero_have_the_quotients_sign(dtype: str) -> None:
    values = torch.tensor([0.0, -0.0, 1.0, -1.0, 2.5, -2.5, torch.inf, -torch.inf])
    values = values.to(getattr(torch, dtype))
    a, b = (each.flatten() for each in torch.meshgrid(values, values, indexing="ij"))
    for call in (torch.floor_divide, lambda a, b: torch.div(a, b, rounding_mode="floor")):
        wanted = call(a, b)
        given = call(a.npu(), b.npu()).cpu()
        assert torch.equal(given.nan_to_num(), wanted.nan_to_num())
        is_number = ~wanted.isnan()
        assert torch.equal(given.isnan(), ~is_number)
        assert torch.equal(given.signbit()[is_number], wanted.signbit()[is_number])


def test_the_smallest_whole_number_is_below_zero() -> None:
    x = torch.tensor([torch.iinfo(torch.int64).min, 0, 7])
    assert torch.equal(x.npu().sign().cpu(), x.sign())
    assert torch.equal(x.int().npu().sgn().cpu(), x.int().sgn())
