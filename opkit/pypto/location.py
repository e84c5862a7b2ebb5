"""The line of the user's program that is being traced."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from opkit.compiler import Location

__all__ = ["here"]

_OURS = tuple(str(Path(__file__).parents[1] / name) + os.sep for name in ("pypto", "compiler"))


def here() -> Location | None:
    """Return the line of the user's program that is running."""
    frame = sys._getframe(1)
    while frame is not None:
        name = frame.f_code.co_filename
        if not name.startswith((*_OURS, "<frozen")):
            return Location(name, frame.f_lineno)
        if frame.f_back is None:
            break
        frame = frame.f_back
    return None
