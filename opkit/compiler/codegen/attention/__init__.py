"""Attention in one kernel: written as Ascend C, launched."""

from __future__ import annotations

from .kernel import apart, attention_arrays, attention_data, attention_kernel, workspaces
from .text import AttentionKernel, write_attention

__all__ = [
    "AttentionKernel",
    "apart",
    "attention_arrays",
    "attention_data",
    "attention_kernel",
    "workspaces",
    "write_attention",
]
