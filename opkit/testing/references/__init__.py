"""References for operators that have none of their own: by name, by formula, from torch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opkit.lazy import lazy_names

if TYPE_CHECKING:
    from .by_name import Found, find_by_name
    from .reference import Part, Reference, find_reference, in_single_precision

__all__ = [
    "Found",
    "Part",
    "Reference",
    "find_by_name",
    "find_reference",
    "in_single_precision",
]

__getattr__ = lazy_names(
    __name__,
    {
        "by_name": (
            "Found",
            "find_by_name",
        ),
        "reference": (
            "Part",
            "Reference",
            "find_reference",
            "in_single_precision",
        ),
    },
)
