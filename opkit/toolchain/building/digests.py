"""Hashes of files, remembered as long as the files stay untouched."""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

__all__ = ["FileDigests", "FileStat"]

# A file changed twice within one tick of the file system's clock keeps its time; so a time this
# close to now is not yet trusted.
_SETTLED_NS = 1_000_000_000


@dataclass(frozen=True)
class FileStat:
    """What tells that a file was not written since."""

    size_bytes: int
    mtime_ns: int

    @classmethod
    def of(cls, path: str) -> FileStat | None:
        """Return a file's state; None where there is no such file."""
        try:
            status = Path(path).stat()
        except OSError:
            return None
        return cls(status.st_size, status.st_mtime_ns)

    @property
    def settled(self) -> bool:
        """Whether a later write would be sure to change it."""
        return time.time_ns() - self.mtime_ns > _SETTLED_NS


class FileDigests:
    """SHA-256 of files by path; each file is read once a build. Safe to share between threads."""

    def __init__(self, known: Mapping[str, tuple[FileStat, str]] | None = None) -> None:
        self._known = dict(known or {})
        self._checked: dict[str, str | None] = {}
        self._lock = threading.Lock()

    def of(self, path: str) -> str | None:
        """Return a file's hash; None where it cannot be read."""
        with self._lock:
            if path in self._checked:
                return self._checked[path]
        stat = FileStat.of(path)
        known = self._known.get(path)
        if stat is not None and known is not None and known[0] == stat:
            digest: str | None = known[1]
        else:
            digest = _hash_file(path)
        with self._lock:
            self._checked[path] = digest
            if digest is not None and stat is not None and stat.settled:
                self._known[path] = (stat, digest)
            else:
                self._known.pop(path, None)
        return digest

    def known(self) -> dict[str, tuple[FileStat, str]]:
        """Return what a later build may start from."""
        with self._lock:
            return dict(self._known)


def _hash_file(path: str) -> str | None:
    try:
        return hashlib.sha256(Path(path).read_bytes()).hexdigest()
    except OSError:
        return None
