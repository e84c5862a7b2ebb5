"""ATen operators in the compiler's: one table, one row an operator.

A row's function takes a `Call` and then what the ATen operator takes, with tensors as values of the
program under construction; it returns a value, or a tuple where the operator returns several.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from opkit.graph.aten import elementwise, movement, products, rows
from opkit.graph.aten.call import Call, Refused

__all__ = ["INDICES", "ROWS", "VIEWS", "Call", "Refused"]

ROWS: Mapping[str, Callable[..., Any]] = {
    **elementwise.ROWS,
    **movement.ROWS,
    **products.ROWS,
    **rows.ROWS,
}
"""By the name that torch prints, `aten.add.Tensor`."""

VIEWS = movement.VIEWS
"""The operators that torch does without touching an element."""

INDICES: Mapping[str, int] = movement.INDICES
"""Operators that look up, and which of their arguments holds the indices."""
