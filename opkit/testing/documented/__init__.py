"""What operators compute by their documents: functions, a file a family.

They are the references of operators that bring none, found by an operator's name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from opkit.lazy import lazy_names

if TYPE_CHECKING:
    from .lookup import NAMESPACE, Namespace, calls_in, documented_as, formulas_of
    from .table import Documented, Kind, Parameter, reference_package, tensors

__all__ = [
    "NAMESPACE",
    "Documented",
    "Kind",
    "Namespace",
    "Parameter",
    "calls_in",
    "documented_as",
    "formulas_of",
    "reference_package",
    "tensors",
]

__getattr__ = lazy_names(
    __name__,
    {
        "lookup": ("NAMESPACE", "Namespace", "calls_in", "documented_as", "formulas_of"),
        "table": ("Documented", "Kind", "Parameter", "reference_package", "tensors"),
    },
)
