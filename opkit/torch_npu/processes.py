"""Tensors of the device that a program hands to another process."""

from __future__ import annotations

from multiprocessing.reduction import ForkingPickler
from typing import Any

import torch
from torch.multiprocessing import reductions

__all__ = ["refuse_other_processes"]


def refuse_other_processes() -> None:
    """Have queues and pipes of `torch.multiprocessing` refuse storages of the device by name.

    Each process has devices and an address space of its own. A copy in the other process would not
    be what PyTorch promises, which is one memory that both see.
    """
    ForkingPickler.register(torch.UntypedStorage, _reduce)


def _reduce(storage: torch.UntypedStorage) -> Any:
    if storage.device.type == "npu":
        raise RuntimeError(
            f"a tensor on {storage.device} cannot be sent to another process: the memory of an"
            " emulated device is its process's own. Send tensor.cpu(), and move it to npu there"
        )
    original: Any = reductions.reduce_storage
    return original(storage)
