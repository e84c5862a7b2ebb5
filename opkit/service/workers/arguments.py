"""The arguments of a call, and the rule by which its answer is right."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from opkit.service.workers.shared_memory import Tensor

__all__ = ["Attributes", "Inputs", "Rule"]

Inputs = Sequence["Tensor | list[Tensor] | None"]
Attributes = Mapping[str, Any]


class Rule(NamedTuple):
    """What a right answer is."""

    standard: str
    """A precision standard, as in `opkit test --standard`."""
    tolerance: float | None = None
    """In place of it: see `opkit.service.workers.closeness.far_off`."""
