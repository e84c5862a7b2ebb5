"""Operator projects and libraries on disk."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opkit.lazy import lazy_names

if TYPE_CHECKING:
    from .operator_library import OperatorLibrary, find_library, find_operators
    from .project import Project, load_project
    from .tree import Tree
    from .wheel import build_wheel

__all__ = [
    "OperatorLibrary",
    "Project",
    "Tree",
    "build_wheel",
    "find_library",
    "find_operators",
    "load_project",
]

__getattr__ = lazy_names(
    __name__,
    {
        "operator_library": (
            "OperatorLibrary",
            "find_library",
            "find_operators",
        ),
        "project": (
            "Project",
            "load_project",
        ),
        "tree": ("Tree",),
        "wheel": ("build_wheel",),
    },
)
