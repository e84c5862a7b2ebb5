"""What torch_npu keeps under this name, made of PyTorch's own modules."""

from __future__ import annotations

import torch

__all__ = ["DropoutWithByteMask"]


class DropoutWithByteMask(torch.nn.Dropout):
    """PyTorch's dropout: on the emulated device all masks are bytes."""
