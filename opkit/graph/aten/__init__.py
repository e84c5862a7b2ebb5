"""ATen operators in the compiler's: one table, one row an operator; those that work element by
element are `opkit.compiler`'s own, which the device `npu` shares.

A row's function takes a `Call` and then what the ATen operator takes, with tensors as values of the
program under construction; it returns a value, or a tuple where the operator returns several.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from opkit.compiler import ATEN_ELEMENTWISE, Refused
from opkit.compiler import AtenCall as Call
from opkit.graph.aten import (
    chance,
    images,
    movement,
    places,
    pooling,
    products,
    quantised,
    rows,
    sampling,
    searching,
)
from opkit.graph.aten.whole import INPUT, LARGEST, Bound, bound_of, largest_limit

__all__ = [
    "INPUT",
    "LARGEST",
    "LOOKUPS",
    "ROWS",
    "VIEWS",
    "Bound",
    "Call",
    "Refused",
    "bound_of",
    "largest_limit",
]

LOOKUPS: Mapping[str, places.Lookup] = {
    **places.LOOKUPS,
    **pooling.LOOKUPS,
    **searching.LOOKUPS,
}
"""Operators that look up, with which of their arguments hold places."""

ROWS: Mapping[str, Callable[..., Any]] = {
    **chance.ROWS,
    **ATEN_ELEMENTWISE,
    **images.ROWS,
    **movement.ROWS,
    **places.ROWS,
    **pooling.ROWS,
    **products.ROWS,
    **quantised.ROWS,
    **rows.ROWS,
    **sampling.ROWS,
    **searching.ROWS,
}
"""By the name that torch prints, `aten.add.Tensor`."""

VIEWS = movement.VIEWS
"""The operators that torch does without touching an element."""
