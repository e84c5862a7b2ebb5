"""Files that others read are whole: written beside their place, then renamed.

Where a path names no regular file but a device, a pipe or a socket, it is written through: nothing
takes its place. Where it is a link, what the link leads to is written.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from opkit.errors import UsageError

__all__ = ["read_lines", "write_aside", "written_aside"]


def read_lines(path: Path) -> list[str]:
    """Return the lines of a text file that a user has written.

    Raises:
        UsageError: it cannot be read, or is no text in UTF-8.
    """
    try:
        return path.read_text(encoding="utf-8-sig").splitlines()
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UsageError(
            f"{path}: is no text in UTF-8: byte {error.start} is 0x{error.object[error.start]:02x}",
            help="save it as UTF-8, or give another file",
        ) from error


@contextlib.contextmanager
def written_aside(path: Path, *, mode: int = 0o644) -> Iterator[Path]:
    """Give an empty file to write to; it takes its place at the end, or is gone after any error.

    Several processes and threads may write the same file.

    Raises:
        OSError: the folder does not exist or cannot be written; the path is a folder.
    """
    if path.exists() and not path.is_file():
        with _written_through(path) as aside:
            yield aside
        return
    # Not the link: what it leads to, which need not be there yet.
    place = Path(os.path.realpath(path)) if path.is_symlink() else path
    descriptor, name = tempfile.mkstemp(
        prefix=f".{place.name[:64]}.", suffix=".tmp", dir=place.parent
    )
    os.close(descriptor)
    aside = Path(name)
    try:
        aside.chmod(mode)
        yield aside
        aside.replace(place)
    except BaseException:
        # Ctrl-C too. What cannot be written cannot be removed: the first error tells why.
        with contextlib.suppress(OSError):
            aside.unlink()
        raise


@contextlib.contextmanager
def _written_through(path: Path) -> Iterator[Path]:
    """Give a file whose content goes to a device, a pipe or a socket at the end."""
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    with tempfile.TemporaryDirectory(prefix="opkit-output-") as folder:
        aside = Path(folder, path.name)
        aside.touch()
        yield aside
        # Not created: what was there a moment ago may be gone. A pipe waits for its reader.
        descriptor = os.open(path, os.O_WRONLY)
        with aside.open("rb") as content, os.fdopen(descriptor, "wb") as out:
            shutil.copyfileobj(content, out)


def write_aside(path: Path, content: bytes, *, mode: int = 0o644) -> None:
    """Write a file whole or not at all.

    Raises:
        OSError: the folder does not exist or cannot be written.
    """
    with written_aside(path, mode=mode) as aside:
        aside.write_bytes(content)
