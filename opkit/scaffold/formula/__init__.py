"""Formulas: parsed, differentiated, lowered to Ascend C, and written out as a NumPy reference.

The language:
    + - * / ** over inputs, attributes, numbers, `pi`, `e` and `columns`, the last axis's length;
    the functions of `functions.FUNCTIONS`, and `where(a < b, x, y)`;
    `sum mean max min(value, axis=-1)`, whose result broadcasts back over the row;
    `row(input)` for an input that has one value per row;
    `like(value, x)` around a whole formula, for a value per row that fills the row.

Names load when they are first used: most commands of opkit need none of them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .derive import UnsupportedGradient, backward, unsupported_gradients
    from .files import kernel_files
    from .golden import golden_source
    from .interpreter import interpret
    from .lowering import lower
    from .plan import Plan
    from .reader import ParsedFormulas, ParsedOutput, parse
    from .torch_source import torch_source

__all__ = [
    "ParsedFormulas",
    "ParsedOutput",
    "Plan",
    "UnsupportedGradient",
    "backward",
    "golden_source",
    "interpret",
    "kernel_files",
    "lower",
    "parse",
    "torch_source",
    "unsupported_gradients",
]

_HOME = {
    "ParsedFormulas": "reader",
    "ParsedOutput": "reader",
    "Plan": "plan",
    "UnsupportedGradient": "derive",
    "backward": "derive",
    "golden_source": "golden",
    "interpret": "interpreter",
    "kernel_files": "files",
    "lower": "lowering",
    "parse": "reader",
    "torch_source": "torch_source",
    "unsupported_gradients": "derive",
}


def __getattr__(name: str) -> object:
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f".{home}", __name__), name)
    # The submodule `torch_source` has just been bound under its name: the function wins.
    globals()[name] = value
    return value
