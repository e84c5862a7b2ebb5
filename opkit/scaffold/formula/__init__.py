"""Formulas: parsed, checked, as graphs and their gradients, and as a reference for NumPy or torch.

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
    from .checks import EVENTS, check_formulas
    from .derive import (
        UnsupportedGradient,
        backward,
        declined_gradients,
        unsupported_gradients,
    )
    from .golden import Precision, golden_source
    from .graphs import NUMBERS, formula_graph_of, leading_size, spec_error
    from .named_axes import OverRows, over_rows
    from .reader import ParsedFormulas, ParsedOutput, parse
    from .torch_source import torch_source

__all__ = [
    "EVENTS",
    "NUMBERS",
    "OverRows",
    "ParsedFormulas",
    "ParsedOutput",
    "Precision",
    "UnsupportedGradient",
    "backward",
    "check_formulas",
    "declined_gradients",
    "formula_graph_of",
    "golden_source",
    "leading_size",
    "over_rows",
    "parse",
    "spec_error",
    "torch_source",
    "unsupported_gradients",
]

__getattr__ = lazy_names(
    __name__,
    {
        "checks": ("EVENTS", "check_formulas"),
        "derive": (
            "UnsupportedGradient",
            "backward",
            "declined_gradients",
            "unsupported_gradients",
        ),
        "graphs": ("NUMBERS", "formula_graph_of", "leading_size", "spec_error"),
        "named_axes": ("OverRows", "over_rows"),
        "golden": ("Precision", "golden_source"),
        "reader": ("ParsedFormulas", "ParsedOutput", "parse"),
        "torch_source": ("torch_source",),
    },
)
