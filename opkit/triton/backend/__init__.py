"""What Triton finds by its entry points: the driver of the emulated device."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opkit.lazy import lazy_names

if TYPE_CHECKING:
    from .driver import OpkitDriver

__all__ = ["OpkitDriver"]

# Triton imports the modules themselves while it is imported, when the classes are not there yet.
__getattr__ = lazy_names(__name__, {"driver": ("OpkitDriver",)})
