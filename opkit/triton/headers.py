"""Where the headers lie that kernels of this target include."""

from __future__ import annotations

from pathlib import Path

__all__ = ["DEVICE_FUNCTIONS"]

DEVICE_FUNCTIONS = Path(__file__).parent / "device"
"""The folder of `#include`."""
