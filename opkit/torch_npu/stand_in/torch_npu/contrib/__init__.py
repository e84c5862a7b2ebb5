"""What torch_npu keeps under this name."""

from . import function, module

__all__ = ["function", "module", "transfer_to_npu"]
