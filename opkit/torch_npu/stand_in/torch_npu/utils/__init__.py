"""What torch_npu keeps under this name."""

from __future__ import annotations

__all__ = ["cpp_extension"]
