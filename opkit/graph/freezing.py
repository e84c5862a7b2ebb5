"""Fake-quantisation modules as training left them: what torch can export."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

__all__ = ["fixed"]


class Fixed(nn.Module):
    """Fake-quantisation as training left it, in a form that torch can export: its own module asks
    tensors whether it is switched on."""

    def __init__(self, module: Any) -> None:
        super().__init__()
        self.is_on = bool(module.fake_quant_enabled[0])
        self.low, self.high = int(module.quant_min), int(module.quant_max)
        self.axis = int(getattr(module, "ch_axis", -1))
        self.scales = [float(each) for each in module.scale.reshape(-1)]
        self.zeros = [int(each) for each in module.zero_point.reshape(-1)]
        self.is_per_channel = len(self.scales) > 1 or "channel" in str(module.qscheme)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the nearest levels."""
        if not self.is_on:
            return x
        if not self.is_per_channel:
            return torch.fake_quantize_per_tensor_affine(
                x, self.scales[0], self.zeros[0], self.low, self.high
            )
        scales = torch.tensor(self.scales, dtype=torch.float32)
        zeros = torch.tensor(self.zeros, dtype=torch.int32)
        return torch.fake_quantize_per_channel_affine(
            x, scales, zeros, self.axis, self.low, self.high
        )


def fixed(model: nn.Module) -> nn.Module:
    """Return a model, changed in place, whose fake-quantisation is as training left it."""
    from torch.ao.quantization import FakeQuantizeBase

    if isinstance(model, FakeQuantizeBase):
        return Fixed(model)
    for parent in list(model.modules()):
        for name, child in list(parent.named_children()):
            if isinstance(child, FakeQuantizeBase):
                setattr(parent, name, Fixed(child))
    return model
