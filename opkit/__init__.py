"""opkit: scaffold, build, test and profile AI-core operators without an NPU."""

from __future__ import annotations

__all__ = ["__version__"]

__version__ = "0.1.0"
