"""What the operators of this process's device came to, for tables of a profile."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from opkit.profiling import OperatorCount

__all__ = ["operator_counts"]


def operator_counts() -> list[OperatorCount]:
    """Return every operator that was called on the device; none where it was never used."""
    native = sys.modules.get("opkit.torch_npu.native")
    if native is None or native._loaded is None:
        return []
    from opkit.profiling import OperatorCount

    rows = json.loads(native._loaded.opkit_npu_counts())
    return [OperatorCount(row["operator"], row["native"], row["fallback"]) for row in rows]
