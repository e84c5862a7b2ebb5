"""Files that others read are whole: written beside their place, then renamed."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

__all__ = ["write_aside", "written_aside"]


@contextlib.contextmanager
def written_aside(path: Path, *, mode: int = 0o644) -> Iterator[Path]:
    """Give an empty file to write to; it takes its place at the end, or is gone after any error.

    Several processes and threads may write the same file.

    Raises:
        OSError: the folder does not exist or cannot be written.
    """
    descriptor, name = tempfile.mkstemp(
        prefix=f".{path.name[:64]}.", suffix=".tmp", dir=path.parent
    )
    os.close(descriptor)
    aside = Path(name)
    try:
        aside.chmod(mode)
        yield aside
        aside.replace(path)
    except BaseException:
        # Ctrl-C too. What cannot be written cannot be removed: the first error tells why.
        with contextlib.suppress(OSError):
            aside.unlink()
        raise


def write_aside(path: Path, content: bytes, *, mode: int = 0o644) -> None:
    """Write a file whole or not at all.

    Raises:
        OSError: the folder does not exist or cannot be written.
    """
    with written_aside(path, mode=mode) as aside:
        aside.write_bytes(content)
