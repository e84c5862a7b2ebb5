"""What is judged: a copy of its sources, which kind it is, and its artifact, made in a sandbox."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import opkit
from opkit.chips import Chip
from opkit.emulator import include_dir, library_path
from opkit.errors import OperatorError
from opkit.executor import Cage, Folder, LocalExecutor, Lost, Work, bare, folder_of
from opkit.folders import (
    DEFAULT_MAX_BYTES,
    cache_folder,
    evict_oldest,
    filling_cache,
    folder_bytes,
)
from opkit.judging.kinds import Kind, candidate_files, imports_torch, kind_of
from opkit.judging.lockdown import Limits
from opkit.judging.recording import KernelText, Recorded
from opkit.judging.recordings import recorded_program
from opkit.judging.sandbox import Sandbox
from opkit.judging.worker import BuildSetup, RecordRequest, begin_build
from opkit.schema import OpSpec
from opkit.toolchain import find_compiler

__all__ = ["INSIDE", "Built", "built_candidate", "candidate_files"]

INSIDE = {"candidate": "/judge/candidate", "artifact": "/judge/artifact"}
"""Where sandboxes have a candidate's sources and what is built of them."""


@dataclass(frozen=True)
class Built:
    """A candidate that was built, or why it was not."""

    sources: Path
    """The copy that was built."""
    artifact: Path
    digest: str
    """Digest of its sources and of what they launch: the same on every machine."""
    op: str = ""
    """Its OpDef; empty where it does not compile."""
    failure: dict[str, Any] = field(default_factory=dict)
    """What the build said: error, kind, file, line, code."""
    inputs: int = 0
    outputs: int = 0
    kind: Kind = "project"
    recorded: Mapping[str, Recorded] = field(default_factory=dict)
    """Launches of a program, by the names of cases."""


def built_candidate(
    candidate: Path,
    spec: OpSpec,
    calls: Callable[[], Sequence[RecordRequest]],
    *,
    chip: Chip,
    limits: Limits,
    sandboxed: bool,
) -> Built:
    """Return a candidate, built for the operator of a task; what builds is built once.

    What does not build is built again the next time: a limit of time or memory may have ended it.

    Args:
        calls: returns the task's cases, which a program is called with.
    Raises:
        UsageError: it is none, or too large.
        SetupError: there is no compiler, or no room.
    """
    folder = cache_folder() / "judged"
    with filling_cache(folder):
        scratch = Path(tempfile.mkdtemp(prefix=".new-", dir=folder))
    try:
        files = list(candidate_files(candidate))
        kind = kind_of(files, candidate)
        for name, data in files:
            file = scratch / "candidate" / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(data)
        digest = folder_of(scratch / "candidate").digest()
        recorded: Mapping[str, Recorded] = {}
        kernels: dict[str, KernelText] = {}
        if kind == "program":
            recorded = recorded_program(
                _candidate_folder(scratch, sandboxed),
                *(spec, calls(), chip, limits),
                cage=_cage_of(scratch, sandboxed),
                uses_torch=imports_torch(files),
            )
            # What was written down for inputs must not know which inputs there will be.
            digest = hashlib.sha256(f"{digest}\0{recorded!r}".encode()).hexdigest()[:32]
            for each in recorded.values():
                kernels |= each.kernels
        setup = BuildSetup(spec, chip.name, limits, kind, tuple(kernels.values()))
        place = folder / _key(digest, spec, chip)
        about: dict[str, Any] = {"kind": kind, "recorded": recorded}
        if not (place / _RECORD).is_file():
            found = _build(scratch, setup, sandboxed)
            if "failure" in found:
                failed = Built(scratch / "candidate", scratch / "artifact", digest, **found)
                return replace(failed, **about)
            shutil.rmtree(scratch / "cache", ignore_errors=True)
            size = folder_bytes(scratch)
            record = json.dumps({_BYTES: size, **found})
            (scratch / _RECORD).write_text(record, encoding="utf-8")
            # Before it is among them, and none of those that are still being made.
            evict_oldest(_entries(folder), max_bytes=max(0, DEFAULT_MAX_BYTES - size))
            with contextlib.suppress(OSError):
                # Another process may have been faster, with the same content.
                scratch.rename(place)
        return replace(_read(place, digest), **about)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _candidate_folder(scratch: Path, sandboxed: bool) -> Folder:
    return Folder(Path(INSIDE["candidate"]) if sandboxed else scratch / "candidate")


def _cage_of(scratch: Path, sandboxed: bool) -> Cage:
    """Return where a program is called: it sees its files, and what opkit has built for torch."""
    if not sandboxed:
        return bare
    cache = cache_folder()
    seen = {INSIDE["candidate"]: scratch / "candidate", str(cache): cache}
    return Sandbox(seen, environment={"XDG_CACHE_HOME": str(cache.parent)})


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


def _key(digest: str, spec: OpSpec, chip: Chip) -> str:
    """Return what an artifact depends on: sources, operator, chip, compiler, opkit."""
    library = library_path().stat()
    headers = max(path.stat().st_mtime_ns for path in include_dir().rglob("*.h"))
    parts = [
        *(digest, spec.op, spec.name, chip.name, opkit.__version__),
        *(find_compiler().identity, str(library.st_size), str(library.st_mtime_ns), str(headers)),
    ]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]


def _build(scratch: Path, setup: BuildSetup, sandboxed: bool) -> dict[str, Any]:
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
    work = Work(begin_build, setup, folders, seconds=setup.limits.seconds)
    with LocalExecutor(1, cage=cage).open(work) as crew:
        try:
            (found,) = crew.run([None])
        except OperatorError as error:
            found = Lost(error.message, 1)
    if isinstance(found, Lost):
        return {"failure": {"error": f"the build ended: {found}", "kind": "Lost", "code": 1}}
    if not isinstance(found, dict) or "error" in found or not isinstance(found.get("op"), str):
        said = found if isinstance(found, dict) else {"error": "the build says nothing", "code": 1}
        keys = ("error", "kind", "file", "line", "code")
        return {"failure": {key: said.get(key) for key in keys}}
    return {key: found[key] for key in ("op", "inputs", "outputs")}
