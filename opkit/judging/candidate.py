"""What is judged: a copy of its sources, which kind it is, and its artifact, made in a sandbox."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import opkit
from opkit.chips import Chip
from opkit.emulator import include_dir, library_path
from opkit.errors import OperatorError, UsageError
from opkit.executor import Cage, Folder, LocalExecutor, Lost, Work, bare, folder_of
from opkit.folders import (
    DEFAULT_MAX_BYTES,
    cache_folder,
    evict_oldest,
    filling_cache,
    folder_bytes,
)
from opkit.judging.lockdown import Limits
from opkit.judging.sandbox import Sandbox
from opkit.judging.worker import BuildSetup, begin_build
from opkit.schema import OpSpec
from opkit.toolchain import find_compiler

__all__ = ["INSIDE", "Built", "built_candidate", "candidate_files"]

INSIDE = {"candidate": "/judge/candidate", "artifact": "/judge/artifact"}
"""Where sandboxes have a candidate's sources and what is built of them."""

# What neither the kernel nor its host code is made of.
_LEFT_OUT = frozenset(
    (
        *("build", "build_out", "dist", ".git", "__pycache__", "numpy_ext", "torch_ext"),
        *("tests", "benchmarks", "scripts", ".github", ".opkit"),
    )
)
_MOST_BYTES = 64 << 20
_MOST_FILES = 4096


@dataclass(frozen=True)
class Built:
    """A candidate that was built, or why it was not."""

    sources: Path
    """The copy that was built."""
    artifact: Path
    digest: str
    """Of the content of its sources: the same on every machine."""
    op: str = ""
    """Its OpDef; empty where it does not compile."""
    failure: dict[str, Any] = field(default_factory=dict)
    """What the build said: error, kind, file, line, code."""
    inputs: int = 0
    outputs: int = 0


def built_candidate(
    candidate: Path, spec: OpSpec, *, chip: Chip, limits: Limits, sandboxed: bool
) -> Built:
    """Return a candidate, built for the operator of a task; what builds is built once.

    What does not build is built again the next time: a limit of time or memory may have ended it.

    Raises:
        UsageError: it is none, or too large.
        SetupError: there is no compiler, or no room.
    """
    folder = cache_folder() / "judged"
    with filling_cache(folder):
        scratch = Path(tempfile.mkdtemp(prefix=".new-", dir=folder))
    try:
        for name, data in candidate_files(candidate):
            file = scratch / "candidate" / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(data)
        digest = folder_of(scratch / "candidate").digest()
        place = folder / _key(digest, spec, chip)
        if not (place / _RECORD).is_file():
            found = _build(scratch, spec, chip, limits, sandboxed)
            if "failure" in found:
                return Built(scratch / "candidate", scratch / "artifact", digest, **found)
            size = folder_bytes(scratch)
            record = json.dumps({_BYTES: size, **found})
            (scratch / _RECORD).write_text(record, encoding="utf-8")
            # Before it is among them, and none of those that are still being made.
            evict_oldest(_entries(folder), max_bytes=max(0, DEFAULT_MAX_BYTES - size))
            with contextlib.suppress(OSError):
                # Another process may have been faster, with the same content.
                scratch.rename(place)
        return _read(place, digest)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


_RECORD = "built.json"
_BYTES = "bytes"


def _read(place: Path, digest: str) -> Built:
    found = json.loads((place / _RECORD).read_text(encoding="utf-8"))
    os.utime(place)
    found.pop(_BYTES, None)
    return Built(place / "candidate", place / "artifact", digest, **found)


def _entries(folder: Path) -> Iterator[tuple[int, int, Path]]:
    """Yield time of last use, bytes and folder of what was built before."""
    for record in folder.glob(f"[!.]*/{_RECORD}"):
        with contextlib.suppress(OSError, ValueError):
            size = json.loads(record.read_text(encoding="utf-8")).get(_BYTES, 0)
            yield record.parent.stat().st_mtime_ns, int(size), record.parent


_KINDS = {
    ".whl": "is a wheel, and opkit judge builds what it judges",
    ".asc": "is a direct-launch source, which has no host code to choose tiles and types by",
    ".cpp": "is a direct-launch source, which has no host code to choose tiles and types by",
    ".cce": "is a direct-launch source, which has no host code to choose tiles and types by",
}


def _kind(candidate: Path) -> str:
    """Return what a candidate is that is no folder."""
    if not candidate.exists():
        return "there is no such folder"
    if candidate.suffix != ".py":
        return _KINDS.get(candidate.suffix, "is no folder")
    text = candidate.read_text(encoding="utf-8", errors="replace")
    imported = set(re.findall(r"^\s*(?:import|from)\s+(\w+)", text, re.MULTILINE))
    for module, name in (("pypto", "PyPTO"), ("triton", "Triton")):
        if module in imported:
            return f"is a {name} file, of which opkit judge makes no operator"
    return "is a Python file, of which opkit judge makes no operator"


def _launching_file(candidate: Path) -> Path | None:
    """Return the first source that launches a kernel; None where a folder has operators' host
    code, or no such source."""
    found: Path | None = None
    for above, folders, names in os.walk(candidate):
        folders[:] = sorted(name for name in folders if name not in _LEFT_OUT)
        if "op_host" in folders:
            return None
        for name in sorted(names):
            file = Path(above, name)
            is_source = file.suffix in _SOURCES and file.is_file() and not file.is_symlink()
            if found is not None or not is_source or file.stat().st_size > _MOST_SOURCE_BYTES:
                continue
            if _LAUNCH.search(file.read_text(encoding="utf-8", errors="replace")):
                found = file.relative_to(candidate)
    return found


_SOURCES = (".asc", ".cce", ".cpp", ".cc", ".h", ".hpp")
_MOST_SOURCE_BYTES = 1 << 20
_LAUNCH = re.compile(r"\w\s*<<<[^;]*>>>\s*\(")


def _help(candidate: Path) -> str:
    if candidate.suffix == ".whl":
        return "give the folder of the project that it was built of"
    return (
        "a candidate is an operator project: opkit gen makes one of a prototype, and its op_kernel"
        " holds the kernel, in Ascend C"
    )


def candidate_files(candidate: Path) -> Iterator[tuple[str, bytes]]:
    """Yield name and content of each source, without links: what they lead to is not its own.

    Raises:
        UsageError: there is no such folder, or it is too large.
    """
    if not candidate.is_dir():
        raise UsageError(f"{candidate}: {_kind(candidate)}", help=_help(candidate))
    launching = _launching_file(candidate)
    if launching is not None:
        raise UsageError(
            f"{candidate}: is a direct-launch project, {launching} launches its kernel itself:"
            " it has no host code to choose tiles and types by",
            help=_help(candidate),
        )
    size, count = 0, 0
    for above, folders, names in os.walk(candidate):
        folders[:] = sorted(
            name for name in folders if name not in _LEFT_OUT and not Path(above, name).is_symlink()
        )
        for name in sorted(names):
            file = Path(above, name)
            if file.is_symlink() or not file.is_file():
                continue
            size, count = size + file.stat().st_size, count + 1
            if size > _MOST_BYTES or count > _MOST_FILES:
                raise UsageError(
                    f"{candidate} has more than {_MOST_BYTES >> 20} MiB or {_MOST_FILES} files",
                    help="leave out what its kernel and host code are not made of",
                )
            yield str(file.relative_to(candidate)), file.read_bytes()


def _key(digest: str, spec: OpSpec, chip: Chip) -> str:
    """Return what an artifact depends on: sources, operator, chip, compiler, opkit."""
    library = library_path().stat()
    headers = max(path.stat().st_mtime_ns for path in include_dir().rglob("*.h"))
    parts = [
        *(digest, spec.op, spec.name, chip.name, opkit.__version__),
        *(find_compiler().identity, str(library.st_size), str(library.st_mtime_ns), str(headers)),
    ]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]


def _build(
    scratch: Path, spec: OpSpec, chip: Chip, limits: Limits, sandboxed: bool
) -> dict[str, Any]:
    """Build below a scratch folder; return the fields of `Built`."""
    folders = {name: Folder(scratch / name) for name in INSIDE}
    cage: Cage = bare
    if sandboxed:
        folders = {name: Folder(Path(place)) for name, place in INSIDE.items()}
        cache = cache_folder()
        # Host code runs while it is built, to say what its operators are: it must not leave
        # anything behind for others, so the cache is read, and not written.
        seen, writable = {str(cache): cache}, {"/judge": scratch}
        environment = {"XDG_CACHE_HOME": str(cache.parent)}
        if "CXX" in os.environ:
            environment["CXX"] = os.environ["CXX"]
        cage = Sandbox(seen, writable, environment)
    work = Work(begin_build, BuildSetup(chip.name, limits), folders, seconds=limits.seconds)
    with LocalExecutor(1, cage=cage).open(work) as crew:
        try:
            (found,) = crew.run([(spec.op, spec.name)])
        except OperatorError as error:
            found = Lost(error.message, 1)
    if isinstance(found, Lost):
        return {"failure": {"error": f"the build ended: {found}", "kind": "Lost", "code": 1}}
    if not isinstance(found, dict) or "error" in found or not isinstance(found.get("op"), str):
        said = found if isinstance(found, dict) else {"error": "the build says nothing", "code": 1}
        return {
            "failure": {key: said.get(key) for key in ("error", "kind", "file", "line", "code")}
        }
    return {key: found[key] for key in ("op", "inputs", "outputs")}
