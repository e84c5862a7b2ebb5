"""`torch.npu.amp`: PyTorch's own mixed precision, with the device's name left out."""

from __future__ import annotations

from typing import Any

import torch

__all__ = ["GradScaler", "autocast"]


class autocast(torch.autocast):
    """`torch.autocast("npu")`; float16 where no type is given."""

    def __init__(
        self,
        enabled: bool = True,
        dtype: torch.dtype = torch.float16,
        cache_enabled: bool = True,
    ) -> None:
        super().__init__("npu", dtype=dtype, enabled=enabled, cache_enabled=cache_enabled)


class GradScaler(torch.amp.GradScaler):
    """`torch.amp.GradScaler("npu")`.

    Args:
        dynamic: whether the scale follows overflows; else it stays `init_scale`.
    """

    def __init__(
        self,
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        dynamic: bool = True,
        enabled: bool = True,
    ) -> None:
        self._is_dynamic = dynamic
        super().__init__("npu", init_scale, growth_factor, backoff_factor, growth_interval, enabled)

    def update(self, new_scale: Any = None) -> None:
        """Change the scale after a step, where it is dynamic or a new one is given."""
        scale = None if self._is_dynamic or not self._enabled else self.get_scale()
        super().update(new_scale)
        if scale is not None and new_scale is None and self._scale is not None:
            self._scale.fill_(scale)
