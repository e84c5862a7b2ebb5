"""The kernels of the device `npu`, in Ascend C; `opkit.torch_npu` compiles and launches them."""

from __future__ import annotations

from pathlib import Path

__all__ = ["folder"]


def folder() -> Path:
    """Return where their sources lie."""
    return Path(__file__).parent
