"""The one table of operators: front ends, references, gradients, lowering and documents read it."""

from __future__ import annotations

from collections.abc import Mapping

from . import (
    composites,
    exponentials,
    movement,
    ordering,
    places,
    primitives,
    random_numbers,
    scans,
)
from .attention_operator import ATTENTION
from .convolution import CONVOLUTION
from .table import Operator

__all__ = ["OPERATORS"]

OPERATORS: Mapping[str, Operator] = {
    row.name: row
    for row in (
        *primitives.ROWS,
        *composites.ROWS,
        *exponentials.ROWS,
        *movement.ROWS,
        *scans.ROWS,
        *ordering.ROWS,
        *places.ROWS,
        *random_numbers.ROWS,
        ATTENTION,
        CONVOLUTION,
    )
}
