"""Which kind of thing a candidate is, and the files that it is made of."""

from __future__ import annotations

import os
import re
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import Literal, TypeAlias

from opkit.errors import UsageError

__all__ = [
    "LAUNCHING_SUFFIXES",
    "Kind",
    "candidate_files",
    "imports_torch",
    "kind_of",
    "launching_sources",
    "wheel_artifact",
]

Kind: TypeAlias = Literal["project", "direct-launch", "program", "wheel"]
"""`project`: operators with host code. `direct-launch`: sources that launch their kernels.
`program`: Python of PyPTO or Triton. `wheel`: operators that `opkit build` has compiled."""

# What neither the kernel nor its host code is made of.
_LEFT_OUT = frozenset(
    (
        *("build", "build_out", "dist", ".git", "__pycache__", "numpy_ext", "torch_ext"),
        *("tests", "benchmarks", "scripts", ".github", ".opkit"),
    )
)
_MOST_BYTES = 64 << 20
_MOST_FILES = 4096
LAUNCHING_SUFFIXES = (".asc", ".cce", ".cpp", ".cc")
_HEADERS = (".h", ".hpp")
_LAUNCH = re.compile(r"\w\s*<<<[^;]*>>>\s*\(")
_IMPORTED = re.compile(r"^\s*(?:import|from)\s+(\w+)", re.MULTILINE)
_LANGUAGES = frozenset(("pypto", "triton"))
_MANIFEST = "_lib/manifest.json"
_HELP = (
    "a candidate is the folder of an operator project or of direct-launch sources, a wheel, a"
    " source with kernel launches (.asc, .cpp, .cce), or a Python file of PyPTO or Triton"
)


def candidate_files(candidate: Path) -> Iterator[tuple[str, bytes]]:
    """Yield name and content of each source, without links: what they lead to is not its own.

    A file is a candidate of one file; a wheel is what it holds.

    Raises:
        UsageError: there is no such candidate, it is of no kind, or it is too large.
    """
    if candidate.suffix == ".whl" and candidate.is_file():
        files = _files_of_wheel(candidate)
    elif candidate.is_dir():
        files = _files_of_folder(candidate)
    elif not candidate.exists():
        raise UsageError(f"{candidate}: there is no such candidate", help=_HELP)
    elif candidate.suffix in (*LAUNCHING_SUFFIXES, ".py"):
        files = iter([(candidate.name, candidate.read_bytes())])
    else:
        raise UsageError(f"{candidate}: is no candidate", help=_HELP)
    size = 0
    found: list[tuple[str, bytes]] = []
    for name, data in files:
        size += len(data)
        if size > _MOST_BYTES or len(found) == _MOST_FILES:
            raise UsageError(
                f"{candidate} has more than {_MOST_BYTES >> 20} MiB or {_MOST_FILES} files",
                help="leave out what its kernel and host code are not made of",
            )
        found.append((name, data))
    # Refuses what is none before anything travels.
    kind_of(found, candidate)
    yield from found


def _files_of_folder(candidate: Path) -> Iterator[tuple[str, bytes]]:
    for above, folders, names in os.walk(candidate):
        folders[:] = sorted(
            name for name in folders if name not in _LEFT_OUT and not Path(above, name).is_symlink()
        )
        for name in sorted(names):
            file = Path(above, name)
            if file.is_symlink() or not file.is_file():
                continue
            if file.stat().st_size > _MOST_BYTES:
                raise UsageError(f"{file} has more than {_MOST_BYTES >> 20} MiB")
            yield str(file.relative_to(candidate)), file.read_bytes()


def _files_of_wheel(wheel: Path) -> Iterator[tuple[str, bytes]]:
    """Yield what a wheel holds, but for names that lead out of it."""
    try:
        with zipfile.ZipFile(wheel) as archive:
            rows = sorted(archive.infolist(), key=lambda row: row.filename)
            # Before anything is unpacked: a small archive may hold much.
            if sum(row.file_size for row in rows) > _MOST_BYTES:
                raise UsageError(f"{wheel} has more than {_MOST_BYTES >> 20} MiB")
            for row in rows:
                name = PurePosixPath(row.filename)
                if not row.is_dir() and not name.is_absolute() and ".." not in name.parts:
                    yield str(name), archive.read(row)
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, OSError) as err:
        raise UsageError(f"{wheel}: is no wheel: {err}") from err


def kind_of(files: Sequence[tuple[str, bytes]], candidate: Path) -> Kind:
    """Return the kind of a candidate by the files that it is made of.

    Args:
        candidate: what messages call it.
    Raises:
        UsageError: it is of no kind that can be judged.
    """
    names = [name for name, _ in files]
    if wheel_artifact(names):
        return "wheel"
    if any("op_host" in PurePosixPath(name).parts[:-1] for name in names):
        return "project"
    if launching_sources(files):
        return "direct-launch"
    programs = [(name, data) for name, data in files if name.endswith(".py")]
    if any(_LANGUAGES & _imported(data) for _, data in programs):
        return "program"
    if candidate.suffix == ".whl":
        raise UsageError(
            f"{candidate}: is a wheel without operators of opkit build, and without a program of"
            " PyPTO or Triton: what another compiler has made of kernels does not run here",
            help="give the folder of the sources that it was built of",
        )
    if candidate.suffix == ".py":
        raise UsageError(f"{candidate}: is a Python file without PyPTO and Triton", help=_HELP)
    if candidate.is_file():
        raise UsageError(
            f"{candidate}: launches no kernel",
            help="a direct-launch source has kernel<<<blocks, nullptr, stream>>>(...) in it",
        )
    return "project"


def launching_sources(files: Iterable[tuple[str, bytes]]) -> list[str]:
    """Return the sources that launch kernels; those that only include a header that does, too."""
    texts = {
        name: data.decode(errors="replace")
        for name, data in files
        if name.endswith((*LAUNCHING_SUFFIXES, *_HEADERS))
    }
    headers = [
        PurePosixPath(name).name
        for name, text in texts.items()
        if name.endswith(_HEADERS) and _LAUNCH.search(text)
    ]
    return [
        name
        for name, text in texts.items()
        if name.endswith(LAUNCHING_SUFFIXES)
        and (_LAUNCH.search(text) or any(f'{header}"' in text for header in headers))
    ]


def imports_torch(files: Iterable[tuple[str, bytes]]) -> bool:
    """Whether a program takes tensors of torch; else it takes arrays of NumPy."""
    return any("torch" in _imported(data) for name, data in files if name.endswith(".py"))


def _imported(data: bytes) -> set[str]:
    return set(_IMPORTED.findall(data.decode(errors="replace")))


def wheel_artifact(names: Iterable[str]) -> str:
    """Return the folder of a wheel's compiled operators; empty where it has none."""
    manifest = next((name for name in names if name.endswith(_MANIFEST)), "")
    return str(PurePosixPath(manifest).parent) if manifest else ""
