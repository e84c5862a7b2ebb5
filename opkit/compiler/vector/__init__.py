"""Fused element-wise and reducing kernels for the vector cores.

Names load when they are first used: fusion asks for loops only, lowering asks for fusion.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .ascendc import KernelText, write_kernel
    from .domain import Domain, UnfusableError, domain_of
    from .lower import lower_group
    from .plan import Plan, plan_memory
    from .steps import Program
    from .tiling import DoesNotFit, Launch, TilingLayout, launch_for, layout_of, tile_for

__all__ = [
    "DoesNotFit",
    "Domain",
    "KernelText",
    "Launch",
    "Plan",
    "Program",
    "TilingLayout",
    "UnfusableError",
    "domain_of",
    "launch_for",
    "layout_of",
    "lower_group",
    "plan_memory",
    "tile_for",
    "write_kernel",
]

_HOME = {
    "DoesNotFit": "tiling",
    "Domain": "domain",
    "KernelText": "ascendc",
    "Launch": "tiling",
    "Plan": "plan",
    "Program": "steps",
    "TilingLayout": "tiling",
    "UnfusableError": "domain",
    "domain_of": "domain",
    "launch_for": "tiling",
    "layout_of": "tiling",
    "lower_group": "lower",
    "plan_memory": "plan",
    "tile_for": "tiling",
    "write_kernel": "ascendc",
}


def __getattr__(name: str) -> object:
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{home}", __name__), name)
