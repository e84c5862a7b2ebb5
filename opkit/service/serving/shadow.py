"""Copies of calls for versions whose results nobody sees, and how those compare."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import Any

from opkit.service.workers import Inputs

__all__ = ["ShadowReport", "copied"]


@dataclass
class ShadowReport:
    """What a version's shadow calls came to; thread-safe."""

    calls: int = 0
    same_bits: int = 0
    """Results that were the answer's to the last bit."""
    right: int = 0
    """Other results that the reference calls right."""
    wrong: int = 0
    unjudged: int = 0
    """Other results of which no reference can tell whether they are right."""
    failed: int = 0
    left_out: int = 0
    """Copies that were not made, because too many were waiting."""
    largest_difference: float = 0.0
    """Largest absolute difference of an element from the answer's."""
    last_problem: str = ""
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False, compare=False)

    def add(self, kind: str, difference: float = 0.0, problem: str = "") -> None:
        """Count one call; kind: a field's name, such as `same_bits` or `left_out`."""
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
