"""Operands that the host lays out anew, because a kernel does not step over what repeats."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["Spread"]


@dataclass(frozen=True)
class Spread:
    """A contiguous copy of a tensor, broadcast."""

    seen: tuple[int, ...]
    """The shape in which the tensor is seen first; of as many elements."""
    shape: tuple[int, ...]
    """What it is broadcast to."""

    def of(self, array: Any) -> Any:
        """Return an array so."""
        return np.ascontiguousarray(np.broadcast_to(array.reshape(self.seen), self.shape))
