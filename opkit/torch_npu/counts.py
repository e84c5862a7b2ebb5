"""What the operators of this process's device came to, for tables of a profile."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from opkit.profiling import OperatorCount

__all__ = ["operator_counts"]


def operator_counts(since: Sequence[OperatorCount] = ()) -> list[OperatorCount]:
    """Return every operator that was called on the device; none where it was never used.

    Args:
        since: what was counted before, which is left out.
    """
    native = sys.modules.get("opkit.torch_npu.native")
    if native is None or native._loaded is None:
        return []
    from opkit.profiling import OperatorCount

    rows = json.loads(native._loaded.opkit_npu_counts())
    before = {count.operator: count for count in since}
    found = []
    for row in rows:
        old = before.get(row["operator"], OperatorCount(row["operator"], 0, 0))
        native, fallback = row["native"] - old.native, row["fallback"] - old.fallback
        if native or fallback:
            found.append(OperatorCount(row["operator"], native, fallback))
    return found
