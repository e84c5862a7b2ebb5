"""Explanations, pages and verification of compiled programs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opkit.lazy import lazy_names

if TYPE_CHECKING:
    from .explanation import KernelNote, PassNote, explain, pass_notes, stage_text
    from .page import compiled_page
    from .verification import Difference, verify

__all__ = [
    "Difference",
    "KernelNote",
    "PassNote",
    "compiled_page",
    "explain",
    "pass_notes",
    "stage_text",
    "verify",
]

__getattr__ = lazy_names(
    __name__,
    {
        "explanation": (
            "KernelNote",
            "PassNote",
            "explain",
            "pass_notes",
            "stage_text",
        ),
        "page": ("compiled_page",),
        "verification": (
            "Difference",
            "verify",
        ),
    },
)
