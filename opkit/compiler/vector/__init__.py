"""Fused element-wise and reducing kernels for the vector cores.

Names load when they are first used: fusion asks for loops only, lowering asks for fusion.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .ascendc import KernelText, KernelWriter, write_kernel
    from .domain import Domain, UnfusableError, domain_of
    from .lower import lower_group
    from .plan import Plan, plan_memory
    from .statements import cpp_type
    from .steps import Program
    from .tiling import (
        LARGEST_REPEAT,
        DoesNotFit,
        Launch,
        TilingField,
        TilingLayout,
        fill_values,
        launch_for,
        layout_of,
        pack_values,
        row_stride,
        row_unit,
        tile_for,
    )

__all__ = [
    "LARGEST_REPEAT",
    "DoesNotFit",
    "Domain",
    "KernelText",
    "KernelWriter",
    "Launch",
    "Plan",
    "Program",
    "TilingField",
    "TilingLayout",
    "UnfusableError",
    "cpp_type",
    "domain_of",
    "fill_values",
    "launch_for",
    "layout_of",
    "lower_group",
    "pack_values",
    "plan_memory",
    "row_stride",
    "row_unit",
    "tile_for",
    "write_kernel",
]

_HOME = {
    "DoesNotFit": "tiling",
    "Domain": "domain",
    "KernelText": "ascendc",
    "KernelWriter": "ascendc",
    "LARGEST_REPEAT": "tiling",
    "Launch": "tiling",
    "Plan": "plan",
    "Program": "steps",
    "TilingField": "tiling",
    "TilingLayout": "tiling",
    "UnfusableError": "domain",
    "cpp_type": "statements",
    "domain_of": "domain",
    "fill_values": "tiling",
    "launch_for": "tiling",
    "layout_of": "tiling",
    "lower_group": "lower",
    "pack_values": "tiling",
    "plan_memory": "plan",
    "row_stride": "tiling",
    "row_unit": "tiling",
    "tile_for": "tiling",
    "write_kernel": "ascendc",
}


def __getattr__(name: str) -> object:
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{home}", __name__), name)
