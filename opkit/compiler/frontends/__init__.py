"""Formulas and tile programs to graphs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opkit.lazy import lazy_names

if TYPE_CHECKING:
    from .aten import ATEN_ELEMENTWISE, LARGEST_POWER, AtenCall, Refused
    from .formula import (
        FORMULA_WORDS,
        FormulaOutput,
        evaluate_formulas,
        formula_graph,
        shapes_at,
    )
    from .pto import tile_program

__all__ = [
    "ATEN_ELEMENTWISE",
    "FORMULA_WORDS",
    "LARGEST_POWER",
    "AtenCall",
    "FormulaOutput",
    "Refused",
    "evaluate_formulas",
    "formula_graph",
    "shapes_at",
    "tile_program",
]

__getattr__ = lazy_names(
    __name__,
    {
        "aten": ("ATEN_ELEMENTWISE", "LARGEST_POWER", "AtenCall", "Refused"),
        "formula": (
            "FORMULA_WORDS",
            "FormulaOutput",
            "evaluate_formulas",
            "formula_graph",
            "shapes_at",
        ),
        "pto": ("tile_program",),
    },
)
