"""Folders by what is in them: their digest, and copies that are whole or not there."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

__all__ = ["digest_of_folder", "files_below", "keep_folder"]

_PIECE_BYTES = 1 << 20


def files_below(folder: Path) -> Iterator[Path]:
    """Give every regular file below a folder, in the order of its path."""
    yield from sorted(path for path in folder.rglob("*") if path.is_file())


def digest_of_folder(folder: Path) -> str:
    """Return the SHA-256 of the names and contents of all files below a folder, in hex."""
    total = hashlib.sha256()
    for path in files_below(folder):
        name = path.relative_to(folder).as_posix().encode("utf-8", "surrogateescape")
        total.update(len(name).to_bytes(4, "big") + name + _digest(path))
    return total.hexdigest()


def _digest(path: Path) -> bytes:
    # Piece by piece: a model's weights need not fit into memory twice.
    found = hashlib.sha256()
    with path.open("rb") as file:
        while piece := file.read(_PIECE_BYTES):
            found.update(piece)
    return found.digest()


def keep_folder(folder: Path, target: Path) -> None:
    """Move a folder to its place among the kept ones, on the disk before this returns.

    A folder that is there already has the same content, because its name is its digest.

    Raises:
        OSError: the disk is full or cannot be written.
    """
    if target.is_dir():
        return
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".aside-") as name:
        aside = Path(name) / "content"
        shutil.copytree(folder, aside)
        for path in files_below(aside):
            path.chmod(0o444)
            _sync(path)
        for path in sorted((item for item in aside.rglob("*") if item.is_dir()), reverse=True):
            _sync(path)
        _sync(aside)
        aside.rename(target)
        _sync(target.parent)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
