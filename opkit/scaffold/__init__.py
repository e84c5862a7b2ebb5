"""A prototype to a project on disk: rendered as text, then written without losing edits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opkit.lazy import lazy_names

if TYPE_CHECKING:
    from opkit.scaffold.disk import RECORD, Action, FileStatus, write
    from opkit.scaffold.formula import UnsupportedGradient, unsupported_gradients
    from opkit.scaffold.python_names import formula_golden, golden_module
    from opkit.scaffold.render import (
        DEFAULT_COMPUTE_UNIT,
        FRAMEWORKS,
        gradient_gaps,
        own_gradients,
        render,
    )

__all__ = [
    "DEFAULT_COMPUTE_UNIT",
    "FRAMEWORKS",
    "RECORD",
    "Action",
    "FileStatus",
    "UnsupportedGradient",
    "formula_golden",
    "golden_module",
    "gradient_gaps",
    "own_gradients",
    "render",
    "unsupported_gradients",
    "write",
]

__getattr__ = lazy_names(
    __name__,
    {
        "disk": ("Action", "FileStatus", "RECORD", "write"),
        "formula": ("UnsupportedGradient", "unsupported_gradients"),
        "python_names": ("formula_golden", "golden_module"),
        "render": (
            "DEFAULT_COMPUTE_UNIT",
            "FRAMEWORKS",
            "gradient_gaps",
            "own_gradients",
            "render",
        ),
    },
)
