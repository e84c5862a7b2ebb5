"""Compiled units by content: the same compiler, command and sources are compiled once a user.

A unit's key covers the compiler, the command and the unit's own text; what it included is known
only after compiling. So a key leads to a manifest: up to a few lists of (header, hash), each with
the entry that was compiled from exactly those. A lookup compares hashes and runs no compiler.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from opkit.files import write_aside
from opkit.folders import DEFAULT_MAX_BYTES, evict_oldest
from opkit.toolchain.building.digests import FileDigests

__all__ = [
    "DEFAULT_MAX_BYTES",
    "BuildCache",
    "CacheEntry",
    "unit_key",
]

_MAGIC = b"opkit-cache 1\n"
_RESULTS_A_KEY = 8


@dataclass(frozen=True)
class CacheEntry:
    """One compiled unit."""

    data: bytes
    """The shared object or object file."""
    log: str
    """What the compiler printed: its warnings are shown again."""
    dependencies: tuple[tuple[str, str], ...]
    """(path, hash) of every file that was read; relative paths are below the project."""


def unit_key(*parts: str | Sequence[str]) -> str:
    """Return a key for these texts and lists of texts; none can run into the next."""
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


class BuildCache:
    """A folder of compiled units. Never fails a build: what cannot be read is a miss, what cannot
    be written is said once."""

    def __init__(
        self,
        folder: Path,
        *,
        max_bytes: int = DEFAULT_MAX_BYTES,
        warn: Callable[[str], None] = lambda text: None,
    ) -> None:
        self._folder = folder / "units"
        self._max_bytes = max_bytes
        self._warn = warn
        self._writable = True
        self._stored = False

    def lookup(self, key: str, digests: FileDigests, root: Path) -> CacheEntry | None:
        """Return what was compiled under this key from files as they are now."""
        for name, dependencies in self._manifest(key):
            if all(digests.of(str(root / path)) == digest for path, digest in dependencies):
                entry = self._read_entry(name, dependencies)
                if entry is not None:
                    return entry
        return None

    def store(
        self, key: str, *, data: bytes, log: str, dependencies: tuple[tuple[str, str], ...]
    ) -> None:
        """Keep a compiled unit."""
        if not self._writable:
            return
        name = unit_key(key, [f"{path}={digest}" for path, digest in dependencies])
        payload = log.encode() + data
        header = json.dumps(
            {"log_bytes": len(log.encode()), "sha256": hashlib.sha256(payload).hexdigest()}
        )
        others = [item for item in self._manifest(key) if item[0] != name]
        manifest = [(name, dependencies), *others][:_RESULTS_A_KEY]
        try:
            self._write(self._entry_path(name), _MAGIC + header.encode() + b"\n" + payload)
            self._write(self._manifest_path(key), json.dumps(manifest).encode())
            self._stored = True
        except OSError as err:
            self._writable = False
            self._warn(
                f"the build cache {self._folder} cannot be written ({err.strerror or err});"
                " building without it"
            )

    def evict(self) -> int:
        """Delete the entries used longest ago while there are too many bytes; return how many.

        Does nothing where nothing was stored since the last call.
        """
        if not self._stored:
            return 0
        self._stored = False
        return evict_oldest(self._files(), max_bytes=self._max_bytes)

    def _files(self) -> Iterator[tuple[int, int, Path]]:
        for path in self._folder.glob("*/*"):
            with contextlib.suppress(OSError):
                status = path.stat()
                yield status.st_mtime_ns, status.st_size, path

    def _manifest(self, key: str) -> list[tuple[str, tuple[tuple[str, str], ...]]]:
        path = self._manifest_path(key)
        try:
            rows = json.loads(path.read_bytes())
            manifest = [
                (str(name), tuple((str(file), str(digest)) for file, digest in dependencies))
                for name, dependencies in rows
            ]
        except OSError:
            return []
        except (ValueError, TypeError):
            _discard(path)
            return []
        self._touch(path)
        return manifest

    def _read_entry(
        self, name: str, dependencies: tuple[tuple[str, str], ...]
    ) -> CacheEntry | None:
        path = self._entry_path(name)
        try:
            content = path.read_bytes()
        except OSError:
            return None
        try:
            header, _, payload = content.removeprefix(_MAGIC).partition(b"\n")
            fields = json.loads(header)
            whole = (
                content.startswith(_MAGIC)
                and hashlib.sha256(payload).hexdigest() == fields["sha256"]
            )
            log_bytes = int(fields["log_bytes"])
        except (ValueError, KeyError, TypeError):
            whole = False
            log_bytes = 0
        if not whole:
            _discard(path)
            return None
        self._touch(path)
        log = payload[:log_bytes].decode(errors="replace")
        return CacheEntry(data=payload[log_bytes:], log=log, dependencies=dependencies)

    def _entry_path(self, name: str) -> Path:
        return self._folder / name[:2] / name

    def _manifest_path(self, key: str) -> Path:
        return self._folder / key[:2] / f"{key}.json"

    def _write(self, path: Path, content: bytes) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_aside(path, content)

    @staticmethod
    def _touch(path: Path) -> None:
        # Eviction goes by time of use. A read-only cache is still a cache.
        with contextlib.suppress(OSError):
            os.utime(path)


def _discard(path: Path) -> None:
    with contextlib.suppress(OSError):
        path.unlink()
