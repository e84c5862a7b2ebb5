"""What torch_npu keeps under this name, made of PyTorch's own functions."""

from __future__ import annotations

import torch

__all__ = ["dropout_with_byte_mask"]


def dropout_with_byte_mask(
    input1: torch.Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> torch.Tensor:
    """Return PyTorch's dropout: on the emulated device all masks are bytes."""
    return torch.nn.functional.dropout(input1, p, training, inplace)
