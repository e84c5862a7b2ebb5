"""Files that others read are whole: written beside their place, then renamed."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

__all__ = ["write_aside", "written_aside"]


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


def write_aside(path: Path, content: bytes, *, mode: int = 0o644) -> None:
    """Write a file whole or not at all; several processes and threads may write the same one.

    Raises:
        OSError: the folder does not exist or cannot be written.
    """
    descriptor, name = tempfile.mkstemp(prefix=".", suffix=".tmp", dir=path.parent)
    aside = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        aside.chmod(mode)
        aside.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            aside.unlink()
        raise
