"""What turns one graph into another, and parts of it into kernels."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opkit.lazy import lazy_names

if TYPE_CHECKING:
    from .attention_pattern import why_no_attention
    from .collapsing import collapse
    from .differentiation import gradient
    from .domain import Domain, Space, Window, domain_of, with_long_batches
    from .equal_forms import in_equal_form, shifts_of
    from .formula_gradients import formula_gradient, gradient_trees
    from .fusion import FusedGraph, Group, fuse
    from .loops import LoopWriter
    from .own_outputs import with_own_outputs
    from .pipeline import PASSES, FormulaForm, Lowering, Pass, lower, passes_of, rewritten
    from .prologues import fuse_prologues
    from .rewrite import Rebuilder, expand, round_each, simplify
    from .rounds import join_rounds
    from .sharing import share_reductions
    from .sinking import join_slices, movements, sink_transposes
    from .verifier import DamagedGraph, check_fused, check_graph

__all__ = [
    "PASSES",
    "DamagedGraph",
    "Domain",
    "FormulaForm",
    "FusedGraph",
    "Group",
    "LoopWriter",
    "Lowering",
    "Pass",
    "Rebuilder",
    "Space",
    "Window",
    "check_fused",
    "check_graph",
    "collapse",
    "domain_of",
    "expand",
    "formula_gradient",
    "fuse",
    "fuse_prologues",
    "gradient",
    "gradient_trees",
    "in_equal_form",
    "join_rounds",
    "join_slices",
    "lower",
    "movements",
    "passes_of",
    "rewritten",
    "round_each",
    "share_reductions",
    "shifts_of",
    "simplify",
    "sink_transposes",
    "why_no_attention",
    "with_long_batches",
    "with_own_outputs",
]

__getattr__ = lazy_names(
    __name__,
    {
        "attention_pattern": ("why_no_attention",),
        "collapsing": ("collapse",),
        "differentiation": ("gradient",),
        "domain": (
            "Domain",
            "Space",
            "Window",
            "domain_of",
            "with_long_batches",
        ),
        "equal_forms": (
            "in_equal_form",
            "shifts_of",
        ),
        "formula_gradients": ("formula_gradient", "gradient_trees"),
        "fusion": (
            "FusedGraph",
            "Group",
            "fuse",
        ),
        "loops": ("LoopWriter",),
        "own_outputs": ("with_own_outputs",),
        "pipeline": (
            "PASSES",
            "FormulaForm",
            "Lowering",
            "Pass",
            "lower",
            "passes_of",
            "rewritten",
        ),
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
        "verifier": (
            "DamagedGraph",
            "check_fused",
            "check_graph",
        ),
    },
)
