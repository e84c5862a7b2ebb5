"""What torch_npu keeps under this name."""

from __future__ import annotations

__all__ = ["transfer_to_npu"]
