"""What the process's registry of operators holds: torch's device and C++ programs share it."""

from __future__ import annotations

import json
from dataclasses import dataclass

from opkit.optimisers.native import native

__all__ = ["RegisteredOperator", "registered_operators"]


@dataclass(frozen=True)
class RegisteredOperator:
    """One implementation of an operator."""

    op: str
    name: str
    priority: int
    """The highest that takes a call serves it."""
    table: str
    """`type`, `device` or `global`; asked in this order."""
    device: str | None
    dtype: int
    """A ge::DataType number; -1: any."""
    file: str | None
    """Where it was registered."""
    line: int


def registered_operators(op: str | None = None) -> list[RegisteredOperator]:
    """Return the implementations of one operator, or of all, first choice first."""
    rows = [RegisteredOperator(**row) for row in json.loads(native().registered_operators())]
    return [row for row in rows if op is None or row.op == op]
