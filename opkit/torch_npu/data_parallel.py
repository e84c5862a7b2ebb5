"""What `torch.nn.DataParallel` takes from PyTorch's C++, which a build without CUDA does not have.

A tensor goes to each device in parts or as a whole, and comes back. Copies have ended when their
call returns, so streams that are given have nothing to wait for.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import torch

__all__ = ["offer_copies_between_devices"]


def _device(index: int) -> torch.device:
    return torch.device("cpu") if index < 0 else torch.device("npu", index)


def _broadcast(tensor: torch.Tensor, devices: Sequence[int]) -> list[torch.Tensor]:
    return [tensor.to(_device(index)) for index in devices]


def _broadcast_out(tensor: torch.Tensor, out: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    return [each.copy_(tensor) for each in out]


def _broadcast_coalesced(
    tensors: Iterable[torch.Tensor], devices: Sequence[int], buffer_size: int
) -> list[list[torch.Tensor]]:
    given = list(tensors)
    return [[tensor.to(_device(index)) for tensor in given] for index in devices]


def _scatter(
    tensor: torch.Tensor,
    devices: Sequence[int],
    chunk_sizes: Sequence[int] | None,
    dim: int,
    streams: object,
) -> list[torch.Tensor]:
    # Parts that are given are one for each device; else there may be fewer than devices.
    parts = (
        tensor.chunk(len(devices), dim)
        if chunk_sizes is None
        else tensor.split_with_sizes(list(chunk_sizes), dim)
    )
    return [part.to(_device(index)) for part, index in zip(parts, devices, strict=False)]


def _scatter_out(
    tensor: torch.Tensor, out: Sequence[torch.Tensor], dim: int, streams: object
) -> list[torch.Tensor]:
    parts = tensor.split_with_sizes([each.size(dim) for each in out], dim)
    return [each.copy_(part) for each, part in zip(out, parts, strict=True)]


def _gather(tensors: Sequence[torch.Tensor], dim: int, destination: int | None) -> torch.Tensor:
    index = torch.accelerator.current_device_index() if destination is None else destination
    return torch.cat([tensor.to(_device(index)) for tensor in tensors], dim)


def _gather_out(tensors: Sequence[torch.Tensor], out: torch.Tensor, dim: int) -> torch.Tensor:
    return out.copy_(torch.cat([tensor.to(out.device) for tensor in tensors], dim))


def offer_copies_between_devices() -> None:
    """Have `torch.nn.parallel` find its copies where PyTorch was built without them."""
    core: Any = torch._C
    for function in (
        _broadcast,
        _broadcast_out,
        _broadcast_coalesced,
        _scatter,
        _scatter_out,
        _gather,
        _gather_out,
    ):
        if not hasattr(core, function.__name__):
            setattr(core, function.__name__, function)
