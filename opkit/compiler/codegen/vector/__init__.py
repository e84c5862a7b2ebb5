"""Fused element-wise and reducing kernels for the vector cores.

Names load when they are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from opkit.lazy import lazy_names

if TYPE_CHECKING:
    from .ascendc import KernelText, KernelWriter, write_kernel
    from .launch import (
        LARGEST_REPEAT,
        DoesNotFit,
        Launch,
        cores_for,
        fill_values,
        launch_for,
        pack_values,
        row_stride,
        row_unit,
        shares_at,
        tensor_values,
        tile_for,
    )
    from .lines import in_lines
    from .lines_text import LinesWriter
    from .lower import lower_group
    from .plan import plan_memory
    from .run import SlotError, run_plan, run_steps
    from .slots import Plan
    from .statements import cpp_type
    from .steps import Program, Value
    from .tiling import TilingField, TilingLayout, element_bytes, layout_of
    from .typed_text import TypedWriter
    from .types import TypedProgram, Types, common_types


__all__ = [
    "LARGEST_REPEAT",
    "DoesNotFit",
    "KernelText",
    "KernelWriter",
    "Launch",
    "LinesWriter",
    "Plan",
    "Program",
    "SlotError",
    "TilingField",
    "TilingLayout",
    "TypedProgram",
    "TypedWriter",
    "Types",
    "Value",
    "common_types",
    "cores_for",
    "cpp_type",
    "element_bytes",
    "fill_values",
    "in_lines",
    "launch_for",
    "layout_of",
    "lower_group",
    "pack_values",
    "plan_memory",
    "row_stride",
    "row_unit",
    "run_plan",
    "run_steps",
    "shares_at",
    "tensor_values",
    "tile_for",
    "write_kernel",
]

__getattr__ = lazy_names(
    __name__,
    {
        "ascendc": ("KernelText", "KernelWriter", "write_kernel"),
        "launch": (
            *("LARGEST_REPEAT", "DoesNotFit", "Launch", "cores_for", "fill_values"),
            "launch_for",
            *("pack_values", "row_stride", "row_unit", "shares_at"),
            *("tensor_values", "tile_for"),
        ),
        "lines": ("in_lines",),
        "lines_text": ("LinesWriter",),
        "lower": ("lower_group",),
        "plan": ("plan_memory",),
        "slots": ("Plan",),
        "run": ("SlotError", "run_plan", "run_steps"),
        "statements": ("cpp_type",),
        "steps": ("Program", "Value"),
        "tiling": ("TilingField", "TilingLayout", "element_bytes", "layout_of"),
        "typed_text": ("TypedWriter",),
        "types": ("TypedProgram", "Types", "common_types"),
    },
)
