"""Files that others read are whole: written beside their place, then renamed."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

__all__ = ["written_aside"]


@contextlib.contextmanager
def written_aside(path: Path) -> Iterator[Path]:
    """Give the path to write to; the file takes its place at the end, or is gone after any error.

    Raises:
        OSError: the folder does not exist or cannot be written.
    """
    aside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        yield aside
        aside.replace(path)
    except BaseException:
        # Ctrl-C too. What cannot be written cannot be removed: the first error tells why.
        with contextlib.suppress(OSError):
            aside.unlink()
        raise
