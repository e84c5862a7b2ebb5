"""What workers are given: how to begin, which folders they need, and the cases."""

from __future__ import annotations

import hashlib
import io
import os
import pickle
import tarfile
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from opkit.errors import OpkitError, SetupError

__all__ = [
    "ATTEMPTS",
    "NOT_OURS",
    "Folder",
    "Lost",
    "Work",
    "close_runner",
    "folder_of",
    "pack",
    "portable_error",
]

ATTEMPTS = 3
"""Workers that a case may end before it is given up and reported."""
NOT_OURS = "writing into opkit's own pipe"
"""The reason for which a case is lost whose process has sent what opkit never does."""


@dataclass(frozen=True)
class Lost:
    """A case without a result: every worker that ran it ended, or never answered."""

    reason: str
    """How the last of them ended, such as `signal 11`."""
    workers: int = ATTEMPTS
    """How many ended."""

    def __str__(self) -> str:
        if self.workers == 1:
            return f"the process that ran it ended by {self.reason} in the middle of it"
        return f"{self.workers} workers ended while they ran it, the last by {self.reason}"


@dataclass(frozen=True)
class Folder:
    """A folder that cases read; where it travels, it does so once, known by what is in it."""

    path: Path
    left_out: frozenset[str] = frozenset()
    """Names of entries that do not travel, such as `build`."""

    def digest(self) -> str:
        """Return a hash of names, modes and contents.

        Raises:
            SetupError: it cannot be read.
        """
        digest = hashlib.sha256()
        try:
            for file in _files(self.path, self.left_out):
                mode = file.stat().st_mode & 0o111
                digest.update(f"{file.relative_to(self.path)}\0{mode}\0".encode())
                digest.update(hashlib.sha256(file.read_bytes()).digest())
        except OSError as err:
            raise SetupError(f"{err.filename}: cannot be read: {err.strerror}") from err
        return digest.hexdigest()[:32]


@dataclass(frozen=True)
class Work:
    """What a worker does once, and then for every case."""

    begin: Callable[[Any, Mapping[str, Path]], Callable[[Any], Any]]
    """A module's function: takes `setup` and where the folders lie, returns what runs a case. Where
    that has a method `close`, it is called in the end, unless its process is killed before."""
    setup: Any
    """Anything that can be pickled."""
    folders: Mapping[str, Folder] = field(default_factory=dict)
    seconds: float = 0.0
    """A worker that is busy with one case for longer is ended; the case runs again. 0: never."""
    answers: Any = None
    """The declared type of the results, for workers that run code which is not opkit's: what comes
    out of their processes is read as that and as nothing else; see `records`. `Plain`: as plain
    values, which whoever asks checks. None: they are pickled, by workers that are trusted."""
    hidden: tuple[Path, ...] = ()
    """Files and folders that workers cannot read, where the system can hide them; see `hiding`. The
    folders that they are given stay readable."""
    most_bytes: int = 1 << 30
    """Most bytes of results that a process gives at a time; one that gives more is ended. They are
    held in memory here: more are taken only of a worker that is trusted or has known results."""


def close_runner(run: object) -> None:
    """End what runs cases, where it has something to end."""
    close = getattr(run, "close", None)
    if close is not None:
        close()


def folder_of(path: Path, *, left_out: Collection[str] = ()) -> Folder:
    """Return a folder that workers need."""
    return Folder(path.absolute(), frozenset(left_out))


def pack(folder: Folder) -> bytes:
    """Return a folder as what travels to another machine."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz", compresslevel=1) as archive:
        for file in _files(folder.path, folder.left_out):
            archive.add(file, arcname=str(file.relative_to(folder.path)), recursive=False)
    return out.getvalue()


def _files(root: Path, left_out: frozenset[str]) -> list[Path]:
    found = []
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if name not in left_out)
        found += [Path(folder, name) for name in sorted(names) if name not in left_out]
    return [path for path in found if path.is_file()]


def portable_error(error: BaseException, told: str) -> OpkitError:
    """Return an error as one that goes through a pipe; `told` is its traceback."""
    if isinstance(error, OpkitError):
        try:
            copy = pickle.loads(pickle.dumps(error))
        except (TypeError, AttributeError, pickle.PickleError):
            pass
        else:
            assert isinstance(copy, OpkitError)
            return copy
    return OpkitError(f"a worker failed: {type(error).__name__}: {error}\n{told}")
