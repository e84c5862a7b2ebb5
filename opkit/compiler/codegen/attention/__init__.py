"""Attention in one kernel: recognised in programs, written as Ascend C, launched."""

from __future__ import annotations

from .kernel import apart, attention_arrays, attention_data, attention_kernel, workspaces
from .layout import absorb_transposes
from .pattern import recognise_attention
from .text import AttentionKernel, write_attention

__all__ = [
    "AttentionKernel",
    "absorb_transposes",
    "apart",
    "attention_arrays",
    "attention_data",
    "attention_kernel",
    "recognise_attention",
    "workspaces",
    "write_attention",
]
