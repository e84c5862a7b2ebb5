"""What turns one graph into another, and parts of it into kernels."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opkit.lazy import lazy_names

if TYPE_CHECKING:
    from .collapsing import collapse
    from .differentiation import gradient
    from .domain import Domain, Space, domain_of
    from .equal_forms import in_equal_form, shifts_of
    from .fusion import FusedGraph, Group, fuse
    from .loops import LoopWriter
    from .own_outputs import with_own_outputs
    from .prologues import fuse_prologues
    from .rewrite import Rebuilder, expand, round_each, simplify
    from .rounds import join_rounds
    from .sharing import share_reductions
    from .sinking import join_slices, movements, sink_transposes

__all__ = [
    "Domain",
    "FusedGraph",
    "Group",
    "LoopWriter",
    "Rebuilder",
    "Space",
    "collapse",
    "domain_of",
    "expand",
    "fuse",
    "fuse_prologues",
    "gradient",
    "in_equal_form",
    "join_rounds",
    "join_slices",
    "movements",
    "round_each",
    "share_reductions",
    "shifts_of",
    "simplify",
    "sink_transposes",
    "with_own_outputs",
]

__getattr__ = lazy_names(
    __name__,
    {
        "collapsing": ("collapse",),
        "differentiation": ("gradient",),
        "domain": (
            "Domain",
            "Space",
            "domain_of",
        ),
        "equal_forms": (
            "in_equal_form",
            "shifts_of",
        ),
        "fusion": (
            "FusedGraph",
            "Group",
            "fuse",
        ),
        "loops": ("LoopWriter",),
        "own_outputs": ("with_own_outputs",),
        "prologues": ("fuse_prologues",),
        "rewrite": (
            "Rebuilder",
            "expand",
            "round_each",
            "simplify",
        ),
        "rounds": ("join_rounds",),
        "sharing": ("share_reductions",),
        "sinking": (
            "join_slices",
            "movements",
            "sink_transposes",
        ),
    },
)
