"""Formulas, the maths of an operator's outputs as text, to graphs and to NumPy's values."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opkit.lazy import lazy_names

if TYPE_CHECKING:
    from .graph import FormulaOutput, formula_graph
    from .values import evaluate_formulas, shapes_at
    from .words import FORMULA_WORDS

__all__ = ["FORMULA_WORDS", "FormulaOutput", "evaluate_formulas", "formula_graph", "shapes_at"]

__getattr__ = lazy_names(
    __name__,
    {
        "graph": ("FormulaOutput", "formula_graph"),
        "words": ("FORMULA_WORDS",),
        "values": ("evaluate_formulas", "shapes_at"),
    },
)
