"""Operators whose inputs' axes have names: `opkit.compiler` makes their kernel of the formulas.

Names load when they are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from opkit.lazy import lazy_names

if TYPE_CHECKING:
    from .files import program_files
    from .golden import PROGRAM_GOLDEN_HEADER, program_golden
    from .gradients import program_backward, unsupported_program_gradients
    from .shapes import with_shapes
    from .variants import Variant, variants_of

__all__ = [
    "PROGRAM_GOLDEN_HEADER",
    "Variant",
    "program_backward",
    "program_files",
    "program_golden",
    "unsupported_program_gradients",
    "variants_of",
    "with_shapes",
]

__getattr__ = lazy_names(
    __name__,
    {
        "files": ("program_files",),
        "golden": ("PROGRAM_GOLDEN_HEADER", "program_golden"),
        "gradients": ("program_backward", "unsupported_program_gradients"),
        "shapes": ("with_shapes",),
        "variants": ("Variant", "variants_of"),
    },
)
