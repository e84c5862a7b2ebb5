"""The target `triton`: a program as one Python file of Triton kernels."""

from __future__ import annotations

from .program import TritonProgram, compile_triton

__all__ = ["TritonProgram", "compile_triton"]
