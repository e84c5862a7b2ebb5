"""Functions of torch_npu.contrib."""

from .npu_functional import dropout_with_byte_mask

__all__ = ["dropout_with_byte_mask"]
