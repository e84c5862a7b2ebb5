"""Attention in one kernel: written as Ascend C, launched."""

from __future__ import annotations

from .kernel import attention_data, attention_kernel, attention_layout, workspaces
from .text import AttentionKernel, write_attention

__all__ = [
    "AttentionKernel",
    "attention_data",
    "attention_kernel",
    "attention_layout",
    "workspaces",
    "write_attention",
]
