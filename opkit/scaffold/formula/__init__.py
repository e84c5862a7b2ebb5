"""Formulas: parsed, differentiated, lowered to Ascend C, and written out as a NumPy reference.

The language: + - * / ** over inputs, attributes, numbers, `pi`, `e` and `columns` (the length of the last axis); the
functions of `functions.FUNCTIONS`; `where(a < b, x, y)`; `sum mean max min(value, axis=-1)` over the last axis, whose
result broadcasts back over the row; `row(input)` for an input with one value per row; `like(value, x)` around a whole
formula for a value per row that fills the row.

Names load when they are first used, so that importing this package does not import sympy.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .derive import UnsupportedGradient, backward, unsupported_gradients
    from .files import kernel_files
    from .golden import golden_source
    from .lower import lower
    from .parse import ParsedFormulas, ParsedOutput, parse
    from .plan import Plan

__all__ = [
    "ParsedFormulas",
    "ParsedOutput",
    "Plan",
    "UnsupportedGradient",
    "backward",
    "golden_source",
    "kernel_files",
    "lower",
    "parse",
    "unsupported_gradients",
]

_HOME = {
    "ParsedFormulas": "parse",
    "ParsedOutput": "parse",
    "Plan": "plan",
    "UnsupportedGradient": "derive",
    "backward": "derive",
    "golden_source": "golden",
    "kernel_files": "files",
    "lower": "lower",
    "parse": "parse",
    "unsupported_gradients": "derive",
}


def __getattr__(name: str) -> object:
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f".{home}", __name__), name)
    # A submodule of the same name must not hide the function once it is loaded.
    globals()[name] = value
    return value
