"""From a call to a version, to the next where that fails, to an answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opkit.lazy import lazy_names

if TYPE_CHECKING:
    from .aside import Modelling
    from .background import Background
    from .breaker import Breaker, BreakerEvent, BreakerState
    from .calls import Answer, Attempt, Request, attributes_of
    from .operator import ServedOperator
    from .served_version import ServedVersion

__all__ = [
    "Answer",
    "Attempt",
    "Background",
    "Breaker",
    "BreakerEvent",
    "BreakerState",
    "Modelling",
    "Request",
    "ServedOperator",
    "ServedVersion",
    "attributes_of",
]

__getattr__ = lazy_names(
    __name__,
    {
        "aside": ("Modelling",),
        "background": ("Background",),
        "breaker": (
            "Breaker",
            "BreakerEvent",
            "BreakerState",
        ),
        "calls": (
            "Answer",
            "Attempt",
            "Request",
            "attributes_of",
        ),
        "operator": ("ServedOperator",),
        "served_version": ("ServedVersion",),
    },
)
