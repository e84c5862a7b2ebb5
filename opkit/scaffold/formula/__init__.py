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
    from .files import kernel_files
    from .golden import golden_source
    from .interpreter import interpret
    from .lowering import lower
    from .plan import Plan
    from .reader import ParsedFormulas, ParsedOutput, parse
    from .torch_source import torch_source
    from .view import KernelView, check_chips, kernel_views

__all__ = [
    "KernelView",
    "ParsedFormulas",
    "ParsedOutput",
    "Plan",
    "UnsupportedGradient",
    "backward",
    "check_chips",
    "declined_gradients",
    "golden_source",
    "interpret",
    "kernel_files",
    "kernel_views",
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
        "files": ("kernel_files",),
        "golden": ("golden_source",),
        "interpreter": ("interpret",),
        "lowering": ("lower",),
        "plan": ("Plan",),
        "reader": ("ParsedFormulas", "ParsedOutput", "parse"),
        "torch_source": ("torch_source",),
        "view": ("KernelView", "check_chips", "kernel_views"),
    },
)
