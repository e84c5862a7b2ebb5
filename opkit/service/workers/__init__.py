"""Versions in processes of their own: loading, messages, shared memory, attempts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opkit.lazy import lazy_names

if TYPE_CHECKING:
    from .arguments import Attributes, Inputs, Rule
    from .attempts import NEUTRAL, AttemptFailed, Ran, Runner
    from .closeness import largest_difference
    from .loaded import has_odd_values, load, load_reference
    from .local import LocalRunner
    from .modelled import Modelled
    from .pool import Supervisor, WorkerPool
    from .process import WorkerProcess
    from .shared_memory import Tensor

__all__ = [
    "NEUTRAL",
    "AttemptFailed",
    "Attributes",
    "Inputs",
    "LocalRunner",
    "Modelled",
    "Ran",
    "Rule",
    "Runner",
    "Supervisor",
    "Tensor",
    "WorkerPool",
    "WorkerProcess",
    "has_odd_values",
    "largest_difference",
    "load",
    "load_reference",
]

__getattr__ = lazy_names(
    __name__,
    {
        "arguments": (
            "Attributes",
            "Inputs",
            "Rule",
        ),
        "attempts": (
            "AttemptFailed",
            "NEUTRAL",
            "Ran",
            "Runner",
        ),
        "closeness": ("largest_difference",),
        "loaded": (
            "has_odd_values",
            "load",
            "load_reference",
        ),
        "local": ("LocalRunner",),
        "modelled": ("Modelled",),
        "pool": (
            "Supervisor",
            "WorkerPool",
        ),
        "process": ("WorkerProcess",),
        "shared_memory": ("Tensor",),
    },
)
