"""What sources include by name, read as text: no compiler is asked, no condition looked at."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

__all__ = ["folders_of", "included_files", "structs_in"]

_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*["<]([^">]+)[">]', re.MULTILINE)
_STRUCT = re.compile(r"\b(?:struct|class)\s+(\w+)\s*(?::[^;{]*)?\{")
_NAMED = re.compile(r"\b(?:REGISTER_TILING_DEFAULT|GET_TILING_DATA_WITH_STRUCT)\s*\(\s*([\w:]+)")
# For chips with another instruction set: read behind a condition.
_FOREIGN = "arch35"


def included_files(source: Path, folders: Sequence[Path]) -> Iterator[tuple[Path, str]]:
    """Yield a source and everything that it includes from these folders, with the text of each.

    Args:
        folders: searched behind the includer's own.
    """
    seen: set[Path] = set()
    waiting = [source]
    while waiting:
        file = waiting.pop()
        text = file.read_text(encoding="utf-8", errors="replace")
        yield file, text
        for name in _INCLUDE.findall(text):
            for folder in (file.parent, *folders):
                path = Path(os.path.normpath(folder / name))
                if path.is_file():
                    if path not in seen:
                        seen.add(path)
                        waiting.append(path)
                    break


def structs_in(source: Path, folders: Sequence[Path]) -> frozenset[str]:
    """Return the structs that a kernel's source and what it includes define for its tiling data.

    None where it names none of them as its tiling data: they then stand for others.
    """
    structs: set[str] = set()
    named: set[str] = set()
    for file, text in included_files(source, folders):
        if _FOREIGN not in file.parts:
            structs.update(_STRUCT.findall(text))
            named.update(_NAMED.findall(text))
    return frozenset(structs) if structs & named else frozenset()


def folders_of(options: Sequence[str]) -> tuple[Path, ...]:
    """Return the folders of `-I FOLDER` options."""
    return tuple(Path(folder) for option, folder in pairwise(options) if option == "-I")
