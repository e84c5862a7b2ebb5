"""Put a generated tree on disk without ever overwriting what the user wrote."""

from __future__ import annotations

import base64
import hashlib
import json
import zlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Literal

from opkit.errors import UsageError, cannot_write
from opkit.files import write_aside
from opkit.scaffold.merge import merge_texts

__all__ = ["RECORD", "Action", "FileStatus", "write"]

RECORD = PurePosixPath(".opkit/generated.json")
"""Where a project keeps what was generated into it: hashes, and the texts to merge by."""

Action = Literal["create", "identical", "update", "merge", "conflict", "skip", "remove", "stale"]


@dataclass(frozen=True)
class FileStatus:
    """What became of one file."""

    path: PurePosixPath
    """In the project."""
    action: Action
    """`create`: written. `identical`: already so. `update`: rewritten, you had not edited it.
    `merge`: rewritten with your edits and what is new. `conflict`: you edited the lines that are
    new; the new text lies beside it. `skip`: your edits are kept, and there is nothing newer.
    `remove`: no longer generated, and you had not edited it. `stale`: no longer generated, kept for
    your edits."""
    new_text: PurePosixPath | None = None
    """On a conflict, the file with the new text, in the project."""


def write(
    tree: Mapping[PurePosixPath, str],
    directory: Path,
    *,
    replaced: Collection[PurePosixPath] = (),
) -> tuple[FileStatus, ...]:
    """Write a tree of generated files and return what became of each, in path order.

    A file that was edited since it was generated keeps the edits: what is new is merged into it, or
    goes to `<file>.new` where both changed the same lines. Deleting that file says no to it; it
    comes back when the generated text changes again. What is generated no longer goes too, unless
    it was edited.

    Args:
        tree: text by path in the project.
        directory: the project's folder; made when absent.
        replaced: files whose edits the tree already holds; they are overwritten.
    Raises:
        UsageError: the folder cannot be written.
    """
    try:
        directory.mkdir(parents=True, exist_ok=True)
        record = _read_record(directory)
        for path in replaced:
            if (directory / path).is_file():
                record[str(path)] = {"generated": _hash((directory / path).read_bytes())}
        statuses = tuple(
            _write_file(directory, path, tree[path], record) for path in sorted(tree, key=str)
        )
        gone = [PurePosixPath(name) for name in sorted(record) if PurePosixPath(name) not in tree]
        statuses += tuple(_remove_file(directory, path, record) for path in gone)
        text = json.dumps(record, indent=2, sort_keys=True) + "\n"
        _replace(directory / RECORD, text)
    except OSError as err:
        raise cannot_write(directory, err, help="name another folder with -o") from err
    return statuses


# By path: "generated", the hash of the text last written there; "text", that text, packed;
# "offered", the hash of the last `.new`.
_Record = dict[str, dict[str, str]]


def _write_file(directory: Path, path: PurePosixPath, text: str, record: _Record) -> FileStatus:
    target = directory / path
    _refuse_links(directory, path)
    beside = path.with_name(f"{path.name}.new")
    new_hash = _hash(text.encode())
    known = record.get(str(path), {})
    if not target.exists() and not target.is_symlink():
        _replace(target, text)
        record[str(path)] = _entry(text)
        return FileStatus(path, "create")
    on_disk = _hash(target.read_bytes())
    if on_disk == new_hash:
        record[str(path)] = _entry(text)
        (directory / beside).unlink(missing_ok=True)
        return FileStatus(path, "identical")
    if on_disk == known.get("generated"):
        _replace(target, text)
        record[str(path)] = _entry(text)
        return FileStatus(path, "update")
    declined = known.get("offered") == new_hash and not (directory / beside).exists()
    if known.get("generated") == new_hash or declined:
        return FileStatus(path, "skip")
    merged = _merge(target, text, known.get("text"))
    if merged is not None:
        _replace(target, merged)
        record[str(path)] = _entry(text)
        (directory / beside).unlink(missing_ok=True)
        return FileStatus(path, "merge")
    _replace(directory / beside, text)
    record[str(path)] = {**known, "offered": new_hash}
    return FileStatus(path, "conflict", beside)


def _refuse_links(directory: Path, path: PurePosixPath) -> None:
    """Raise UsageError where a link would lead the file out of the project."""
    place = directory
    for part in path.parts:
        place = place / part
        if place.is_symlink():
            raise UsageError(
                f"{place} is a link to {place.readlink()}, and opkit writes through no link",
                help="delete the link, or put what it leads to in its place",
            )


def _merge(target: Path, text: str, packed: str | None) -> str | None:
    """Return the user's file with what is new in it; None where that cannot be said."""
    if packed is None:
        return None
    base = zlib.decompress(base64.b64decode(packed)).decode()
    try:
        return merge_texts(base, target.read_text(encoding="utf-8"), text)
    except UnicodeDecodeError:
        return None


def _remove_file(directory: Path, path: PurePosixPath, record: _Record) -> FileStatus:
    """Delete a file that is no longer generated, unless it was edited."""
    known = record.pop(str(path))
    target = directory / path
    if not target.is_file() or _hash(target.read_bytes()) == known.get("generated"):
        target.unlink(missing_ok=True)
        return FileStatus(path, "remove")
    return FileStatus(path, "stale")


def _entry(text: str) -> dict[str, str]:
    packed = base64.b64encode(zlib.compress(text.encode(), 9)).decode()
    return {"generated": _hash(text.encode()), "text": packed}


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
    is_script = target.name.removesuffix(".new").endswith(".sh")
    write_aside(target, text.encode(), mode=0o755 if is_script else 0o644)
