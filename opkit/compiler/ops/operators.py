"""The one table of operators: front ends, references, gradients, lowering and documents read it."""

from __future__ import annotations

from collections.abc import Mapping

from ..ir import Operator
from . import (
    composites,
    exponentials,
    movement,
    ordering,
    primitives,
    random_numbers,
    scans,
)
from . import (
    lookups as places,
)
from .attention import ATTENTION
from .convolution import CONVOLUTION

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
