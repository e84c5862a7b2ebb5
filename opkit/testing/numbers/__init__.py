"""How far results are from what is right: measures, standards, exact and conditioned arithmetic."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opkit.lazy import lazy_names

if TYPE_CHECKING:
    from opkit.bfloat16 import bfloat16_to_float32, to_bfloat16

    from .arrays import (
        Array,
        Input,
        complex_parts,
        is_complex,
        is_float,
        join_parts,
        narrow,
        part_dtype,
        storage,
        tensors_of,
        wide_parts,
        widen,
        widen_input,
    )
    from .comparison import Comparer, Comparison, Figure, Worst, compare
    from .condition import (
        FACTOR,
        STEP,
        Allowance,
        Evaluation,
        allowance,
        cancellation,
        measured,
        rounding,
    )
    from .exact import ExactOutput, evaluate_exactly
    from .measures import format_numbers
    from .picture import ErrorPicture
    from .standards import ROUNDED, STANDARDS, Standard, double_level, find_standard

__all__ = [
    "FACTOR",
    "ROUNDED",
    "STANDARDS",
    "STEP",
    "Allowance",
    "Array",
    "Comparer",
    "Comparison",
    "ErrorPicture",
    "Evaluation",
    "ExactOutput",
    "Figure",
    "Input",
    "Standard",
    "Worst",
    "allowance",
    "bfloat16_to_float32",
    "cancellation",
    "compare",
    "complex_parts",
    "double_level",
    "evaluate_exactly",
    "find_standard",
    "format_numbers",
    "is_complex",
    "is_float",
    "join_parts",
    "measured",
    "narrow",
    "part_dtype",
    "rounding",
    "storage",
    "tensors_of",
    "to_bfloat16",
    "wide_parts",
    "widen",
    "widen_input",
]

__getattr__ = lazy_names(
    __name__,
    {
        "arrays": (
            "bfloat16_to_float32",
            "Array",
            "Input",
            "complex_parts",
            "is_complex",
            "is_float",
            "join_parts",
            "narrow",
            "part_dtype",
            "storage",
            "tensors_of",
            "to_bfloat16",
            "wide_parts",
            "widen",
            "widen_input",
        ),
        "comparison": (
            "Comparer",
            "Comparison",
            "Figure",
            "Worst",
            "compare",
        ),
        "condition": (
            "Allowance",
            "Evaluation",
            "FACTOR",
            "STEP",
            "allowance",
            "cancellation",
            "measured",
            "rounding",
        ),
        "exact": (
            "ExactOutput",
            "evaluate_exactly",
        ),
        "measures": ("format_numbers",),
        "picture": ("ErrorPicture",),
        "standards": (
            "ROUNDED",
            "STANDARDS",
            "Standard",
            "double_level",
            "find_standard",
        ),
    },
)
