"""Finding samples: folders that build themselves with the language ASC, and lone kernel sources."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from opkit.compat.texts import read_text

__all__ = ["Sample", "find_samples"]

CMAKE_FILE = "CMakeLists.txt"
# The package or the language itself, or programs that link the runtime of an Ascend toolkit.
_USES_ASC = re.compile(
    r"find_package\s*\(\s*ASC\b|LANGUAGES[^)]*\bASC\b|enable_language\s*\(\s*ASC\b"
    r"|\bASCEND_(?:HOME|OPP|TOOLKIT|CANN)\w*|\bascendcl\b",
    re.IGNORECASE,
)
# Projects that only build others, each with a CMake run of its own.
_BUILDS_OTHERS = re.compile(r"\bExternalProject_Add\s*\(", re.IGNORECASE)
_SKIPPED_FOLDERS = {".git", "build", "__pycache__"}


@dataclass(frozen=True)
class Sample:
    """One sample as it lies on disk."""

    name: str
    """Its path from the searched folder; the folder's own name where it is the sample."""
    folder: Path
    sources: tuple[Path, ...] = ()
    """For lone kernel sources without CMake: the files; empty otherwise."""

    @property
    def has_cmake(self) -> bool:
        """Whether it builds itself."""
        return not self.sources


def find_samples(folder: Path) -> tuple[Sample, ...]:
    """Return every sample at or below a folder, by name.

    A folder that is a sample owns what lies below it.
    """
    return tuple(sorted(_below(folder, folder), key=lambda sample: sample.name))


def _below(folder: Path, root: Path) -> Iterator[Sample]:
    name = folder.relative_to(root).as_posix()
    name = root.resolve().name if name == "." else name
    if _is_closed(folder) or _is_project(folder):
        yield Sample(name, folder)
        return
    lone = tuple(sorted(folder.glob("*.asc")))
    if lone:
        yield Sample(name, folder, lone)
    for child in sorted(folder.iterdir()):
        if child.is_dir() and child.name not in _SKIPPED_FOLDERS and not child.is_symlink():
            yield from _below(child, root)


def _is_closed(folder: Path) -> bool:
    """Whether we may not see what a folder holds: trying it as a sample tells the user why."""
    if not os.access(folder, os.R_OK | os.X_OK):
        return True
    file = folder / CMAKE_FILE
    return file.is_file() and not os.access(file, os.R_OK)


def _is_project(folder: Path) -> bool:
    text = _cmake_text(folder)
    if _USES_ASC.search(text):
        return True
    others = (path.parent for path in folder.glob(f"*/{CMAKE_FILE}"))
    return _BUILDS_OTHERS.search(text) is not None and any(map(_is_project, others))


def _cmake_text(folder: Path) -> str:
    lines = read_text(folder / CMAKE_FILE).splitlines()
    return "\n".join(line.partition("#")[0] for line in lines)
