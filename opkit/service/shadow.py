"""Copies of calls for versions whose results nobody sees, and how those compare."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from opkit.service.loaded import Inputs
from opkit.service.shared_memory import Tensor

__all__ = ["ShadowReport", "copied", "largest_difference"]


@dataclass
class ShadowReport:
    """What a version's shadow calls came to; thread-safe."""

    calls: int = 0
    same_bits: int = 0
    """Results that were the answer's to the last bit."""
    right: int = 0
    """Other results that the reference calls right."""
    wrong: int = 0
    failed: int = 0
    left_out: int = 0
    """Copies that were not made, because too many were waiting."""
    largest_difference: float = 0.0
    """Of any element from the answer's, absolute."""
    last_problem: str = ""
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False, compare=False)

    def add(self, kind: str, difference: float = 0.0, problem: str = "") -> None:
        """Count one call; kind: `same_bits`, `right`, `wrong`, `failed` or `left_out`."""
        with self._lock:
            self.calls += kind != "left_out"
            setattr(self, kind, getattr(self, kind) + 1)
            if difference > self.largest_difference:
                self.largest_difference = difference
            self.last_problem = problem or self.last_problem

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        with self._lock:
            return {name: value for name, value in vars(self).items() if name != "_lock"}


def copied(inputs: Inputs) -> Inputs:
    """Return inputs that stay as they are when the caller goes on."""
    return [
        None
        if value is None
        else [(array.copy(), dtype) for array, dtype in value]
        if isinstance(value, list)
        else (value[0].copy(), value[1])
        for value in inputs
    ]


def largest_difference(mine: Sequence[Tensor], theirs: Sequence[Tensor]) -> float | None:
    """Return the largest absolute difference of two results; 0 for the same bits.

    None where they cannot be compared: other shapes, data types or numbers of outputs, or a NaN.
    """
    if len(mine) != len(theirs):
        return None
    largest = 0.0
    for (left, name), (right, other) in zip(mine, theirs, strict=True):
        if left.shape != right.shape or name != other:
            return None
        if left.tobytes() == right.tobytes():
            continue
        if name == "bfloat16":
            left, right = (
                (array.astype(np.uint32) << 16).view(np.float32) for array in (left, right)
            )
        with np.errstate(all="ignore"):
            difference = np.abs(left.astype(np.float64) - right.astype(np.float64)).max()
        if not np.isfinite(difference):
            return None
        # Zeros of two signs differ in bits and not in value.
        largest = max(largest, float(difference), float(np.finfo(np.float64).tiny))
    return largest
