"""Put a generated tree on disk without ever overwriting what the user wrote."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Literal

from opkit.errors import UsageError

__all__ = ["RECORD", "Action", "FileStatus", "write"]

RECORD = PurePosixPath(".opkit/generated.json")
"""Where a project keeps the hashes of what was generated into it."""

Action = Literal["create", "identical", "update", "conflict", "skip"]


@dataclass(frozen=True)
class FileStatus:
    """What became of one file."""

    path: PurePosixPath
    """In the project."""
    action: Action
    """`create`: written. `identical`: already so. `update`: rewritten, you had not edited it.
    `conflict`: you edited it; the new text lies beside it. `skip`: your edits were kept before, and
    there is nothing newer."""
    new_text: PurePosixPath | None = None
    """On a conflict, the file with the new text, in the project."""


def write(tree: Mapping[PurePosixPath, str], directory: Path) -> tuple[FileStatus, ...]:
    """Write a tree of generated files and return what became of each, in path order.

    A file that was edited since it was generated is left alone: the new text goes to `<file>.new`.
    Deleting that file says no to it; it comes back when the generated text changes again.

    Args:
        tree: text by path in the project.
        directory: the project's folder; made when absent.
    Raises:
        UsageError: the folder cannot be written.
    """
    try:
        directory.mkdir(parents=True, exist_ok=True)
        record = _read_record(directory)
        statuses = tuple(
            _write_file(directory, path, tree[path], record) for path in sorted(tree, key=str)
        )
        text = json.dumps(record, indent=2, sort_keys=True) + "\n"
        _replace(directory / RECORD, text)
    except OSError as err:
        raise UsageError(
            f"{directory}: cannot be written: {err.strerror or err}",
            help="name another folder with -o",
        ) from err
    return statuses


# By path: "generated", the hash of the text last written there; "offered", of the last `.new`.
_Record = dict[str, dict[str, str]]


def _write_file(directory: Path, path: PurePosixPath, text: str, record: _Record) -> FileStatus:
    target = directory / path
    beside = path.with_name(f"{path.name}.new")
    new_hash = _hash(text.encode())
    known = record.get(str(path), {})
    if not target.exists() and not target.is_symlink():
        _replace(target, text)
        record[str(path)] = {"generated": new_hash}
        return FileStatus(path, "create")
    on_disk = _hash(target.read_bytes())
    if on_disk == new_hash:
        record[str(path)] = {"generated": new_hash}
        (directory / beside).unlink(missing_ok=True)
        return FileStatus(path, "identical")
    if on_disk == known.get("generated"):
        _replace(target, text)
        record[str(path)] = {"generated": new_hash}
        return FileStatus(path, "update")
    declined = known.get("offered") == new_hash and not (directory / beside).exists()
    if known.get("generated") == new_hash or declined:
        return FileStatus(path, "skip")
    _replace(directory / beside, text)
    record[str(path)] = {**known, "offered": new_hash}
    return FileStatus(path, "conflict", beside)


def _hash(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _read_record(directory: Path) -> _Record:
    try:
        record = json.loads((directory / RECORD).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError):
        record = None
    if not isinstance(record, dict) or not all(isinstance(row, dict) for row in record.values()):
        # Without it every edited and every stale file looks alike: guessing could lose edits.
        raise UsageError(
            f"{directory / RECORD} is damaged, so edited files cannot be told from generated ones",
            help="delete it: every file that differs is then reported as a conflict",
        )
    return record


def _replace(target: Path, text: str) -> None:
    """Write a file whole or not at all; scripts become executable."""
    target.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    aside = Path(name)
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as stream:
            stream.write(text)
        aside.chmod(0o755 if target.name.removesuffix(".new").endswith(".sh") else 0o644)
        aside.replace(target)
    except BaseException:
        aside.unlink(missing_ok=True)
        raise
