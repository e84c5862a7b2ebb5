"""The kernels of the device `npu`, in Ascend C; `opkit.torch_npu` compiles and launches them."""

from __future__ import annotations

__all__: list[str] = ["folder"]

from pathlib import Path


def folder() -> Path:
    """Return where their sources lie."""
    return Path(__file__).parent
