"""What is edited in every text of a kernel, however it comes to the compiler: by `opkit build`, by
`opkit cc`, by unit tests, or at run time."""

from __future__ import annotations

from opkit.toolchain.source.aggregates import aggregate_edits
from opkit.toolchain.source.core_kinds import core_kind_edits
from opkit.toolchain.source.kernel_names import linkage_edits
from opkit.toolchain.source.launch_rewrite import PLAIN_DIALECT, Dialect, Edit, print_edits
from opkit.toolchain.source.tiling_keys import tiling_key_edits
from opkit.toolchain.source.ub_arrays import ub_array_edits

__all__ = ["kernel_edits"]


def kernel_edits(
    text: str, dialect: Dialect = PLAIN_DIALECT, *, keeps_aggregates: bool = False
) -> tuple[Edit, ...]:
    """Return the edits that make a text of a kernel one for the host's compiler.

    Args:
        keeps_aggregates: have C++20 take what C++17 takes for aggregates.
    """
    return (
        *(aggregate_edits(text) if keeps_aggregates else ()),
        *print_edits(text, dialect),
        *core_kind_edits(text),
        *ub_array_edits(text),
        *tiling_key_edits(text),
        *linkage_edits(text, dialect),
    )
