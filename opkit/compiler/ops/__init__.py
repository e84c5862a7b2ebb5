"""The one table of operators, a file a family."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opkit.lazy import lazy_names

if TYPE_CHECKING:
    from .attention import heads_shared
    from .convolution import patches, placed, spaced, unpatched, windows
    from .list_values import joined_arrays, split_array
    from .operators import OPERATORS
    from .ordering import MOST_SORTED
    from .scans import Joined, count_up, log_of_sums, scan
    from .whole_numbers import reduce_whole

__all__ = [
    "MOST_SORTED",
    "OPERATORS",
    "Joined",
    "count_up",
    "heads_shared",
    "joined_arrays",
    "log_of_sums",
    "patches",
    "placed",
    "reduce_whole",
    "scan",
    "spaced",
    "split_array",
    "unpatched",
    "windows",
]

__getattr__ = lazy_names(
    __name__,
    {
        "attention": ("heads_shared",),
        "convolution": (
            "patches",
            "placed",
            "spaced",
            "unpatched",
            "windows",
        ),
        "list_values": (
            "joined_arrays",
            "split_array",
        ),
        "operators": ("OPERATORS",),
        "ordering": ("MOST_SORTED",),
        "scans": (
            "Joined",
            "count_up",
            "log_of_sums",
            "scan",
        ),
        "whole_numbers": ("reduce_whole",),
    },
)
