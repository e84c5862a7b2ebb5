"""Modules of torch_npu.contrib."""

from .npu_modules import DropoutWithByteMask

__all__ = ["DropoutWithByteMask"]
