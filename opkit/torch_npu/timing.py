"""Modelled time of kernels that torch's operators did not launch, on the device's streams."""

from __future__ import annotations

from types import TracebackType

import torch

from opkit.torch_npu.native import library

__all__ = ["StreamTime"]


class StreamTime:
    """Charges what is launched inside of the block to the current stream of a device, so that
    `torch.npu.Event` reads it; nothing where the device is another one than `npu`."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._before_us = -1.0

    def __enter__(self) -> None:
        if self._device.type == "npu":
            self._before_us = library().opkit_npu_clock_us()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._before_us >= 0:
            index = -1 if self._device.index is None else self._device.index
            library().opkit_npu_charge(index, self._before_us)
