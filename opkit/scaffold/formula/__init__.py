"""Formulas: parsed, differentiated, and written out as a NumPy reference and in single precision.

The language:
    + - * / ** over inputs, attributes, numbers, `pi`, `e` and `columns`, the last axis's length;
    the functions of `functions.FUNCTIONS`, and `where(a < b, x, y)`;
    `sum mean max min(value, axis=-1)`, whose result broadcasts back over the row;
    `row(input)` for an input that has one value per row;
    `like(value, x)` around a whole formula, for a value per row that fills the row.

Names load when they are first used: most commands of opkit need none of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from opkit.lazy import lazy_names

if TYPE_CHECKING:
    from .derive import (
        UnsupportedGradient,
        backward,
        declined_gradients,
        unsupported_gradients,
    )
    from .golden import golden_source
    from .interpreter import interpret
    from .lowering import lower
    from .plan import EVENTS, INTEGER_OPERATIONS, Plan
    from .reader import ParsedFormulas, ParsedOutput, parse
    from .torch_source import torch_source

__all__ = [
    "EVENTS",
    "INTEGER_OPERATIONS",
    "ParsedFormulas",
    "ParsedOutput",
    "Plan",
    "UnsupportedGradient",
    "backward",
    "declined_gradients",
    "golden_source",
    "interpret",
    "lower",
    "parse",
    "torch_source",
    "unsupported_gradients",
]

__getattr__ = lazy_names(
    __name__,
    {
        "derive": (
            "UnsupportedGradient",
            "backward",
            "declined_gradients",
            "unsupported_gradients",
        ),
        "golden": ("golden_source",),
        "interpreter": ("interpret",),
        "lowering": ("lower",),
        "plan": ("EVENTS", "INTEGER_OPERATIONS", "Plan"),
        "reader": ("ParsedFormulas", "ParsedOutput", "parse"),
        "torch_source": ("torch_source",),
    },
)
