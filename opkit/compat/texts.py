"""Files of samples as text."""

from __future__ import annotations

from pathlib import Path

__all__ = ["is_file", "read_text"]


def read_text(path: Path) -> str:
    """Return a file's text, whatever its bytes are; empty where it is not there.

    So is one that may not be read: its sample cannot be copied, and that is told.
    """
    try:
        return path.read_bytes().decode("utf-8", errors="replace")
    except OSError:
        return ""


def is_file(path: Path) -> bool:
    """Whether a file is there, as far as we may see."""
    try:
        return path.is_file()
    except OSError:
        return False
