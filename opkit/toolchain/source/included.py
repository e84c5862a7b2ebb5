"""What sources include by name, read as text: no compiler is asked, and of conditions only one is
looked at, whether a kernel is compiled for the CPU twin."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

__all__ = [
    "INCLUDE",
    "STRUCT",
    "compiles_as_twin",
    "folders_of",
    "include_target",
    "included_files",
    "included_texts",
    "structs_in",
]

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*["<]([^">]+)[">]', re.MULTILINE)
"""A directive; group 1 is the name."""
_PARENTHESES = r"\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)"
STRUCT = re.compile(
    rf"\b(?:struct|class)\s+(?:(?:alignas|__attribute__)\s*{_PARENTHESES}\s*|\[\[[^\]]*\]\]\s*)*"
    r"(\w+)\s*(?:final\s*)?(?::[^;{]*)?\{"
)
"""A class that is defined; group 1 is its name."""
_NAMED = re.compile(r"\b(?:REGISTER_TILING_DEFAULT|GET_TILING_DATA_WITH_STRUCT)\s*\(\s*([\w:]+)")
# For chips with another instruction set: read behind a condition.
_FOREIGN = "arch35"
_TWIN = "__CCE_KT_TEST__"
_DIRECTIVE = re.compile(r"^[ \t]*#[ \t]*(if|ifdef|ifndef|elif|else|endif)\b[ \t]*([^\n]*)")
_OF_TWIN = re.compile(rf"(!?)[ \t]*(?:defined\b)?[ \t]*\(?[ \t]*{_TWIN}[ \t]*\)?[ \t]*(?://.*)?")


def included_files(source: Path, folders: Sequence[Path]) -> Iterator[tuple[Path, str]]:
    """Yield a source and everything that it includes from these folders, with the text of each.

    Args:
        folders: searched behind the includer's own.
    """
    text = _text(source)
    yield source, text
    yield from _reached(text, source.parent, folders)


def included_texts(text: str, here: Path, folders: Sequence[Path]) -> tuple[str, ...]:
    """Return a text and those of all files that it includes from these folders.

    Args:
        here: the folder that quoted names are looked for in first.
    """
    return (text, *(found for _, found in _reached(text, here, folders)))


def _reached(text: str, here: Path, folders: Sequence[Path]) -> Iterator[tuple[Path, str]]:
    seen: set[Path] = set()
    waiting = [(text, here)]
    while waiting:
        text, here = waiting.pop()
        for name in INCLUDE.findall(text):
            path = include_target(name, here, folders)
            if path is not None and path not in seen:
                seen.add(path)
                found = _text(path)
                yield path, found
                waiting.append((found, path.parent))


def _text(file: Path) -> str:
    return file.read_text(encoding="utf-8", errors="replace")


def include_target(name: str, here: Path, folders: Sequence[Path]) -> Path | None:
    """Return the file that a name in a directive leads to, if it is in one of the folders.

    Args:
        here: the includer's own folder, which comes first.
    """
    for folder in (here, *folders):
        path = Path(os.path.normpath(folder / name))
        if path.is_file():
            return path
    return None


def compiles_as_twin(source: Path) -> bool:
    """Whether a kernel's source is compiled with the CPU twin's branches, for what it launches."""
    return _is_twin(_text(source))


def _is_twin(text: str) -> bool:
    return "<<<" in text and _TWIN in text


def structs_in(source: Path, folders: Sequence[Path]) -> frozenset[str]:
    """Return the structs that a kernel's source and what it includes define for its tiling data.

    None where it names none of them as its tiling data: they then stand for others.
    """
    structs: set[str] = set()
    named: set[str] = set()
    files = list(included_files(source, folders))
    is_twin = _is_twin(files[0][1])
    for file, text in files:
        if _FOREIGN not in file.parts:
            structs.update(STRUCT.findall(text if is_twin else _without_twin(text)))
            named.update(_NAMED.findall(text))
    return frozenset(structs) if structs & named else frozenset()


def _without_twin(text: str) -> str:
    """Return a source without the branches that only the CPU twin compiles.

    What stands there defines the tiling data once more, for unit tests.
    """
    if _TWIN not in text:
        return text
    kept: list[str] = []
    # Whether each condition that is open is the twin's, and whether its branch is left out now.
    open_conditions: list[tuple[bool, bool]] = []
    for line in text.splitlines():
        directive = _DIRECTIVE.match(line)
        if directive is None:
            if not any(is_out for _, is_out in open_conditions):
                kept.append(line)
        elif directive[1] in ("if", "ifdef", "ifndef"):
            of_twin = _OF_TWIN.fullmatch(directive[2])
            negated = of_twin is not None and (bool(of_twin[1]) != (directive[1] == "ifndef"))
            open_conditions.append((of_twin is not None, of_twin is not None and not negated))
        elif open_conditions:
            is_twins, is_out = open_conditions.pop()
            if directive[1] != "endif":
                open_conditions.append((is_twins, is_twins and not is_out))
    return "\n".join(kept)


def folders_of(options: Sequence[str]) -> tuple[Path, ...]:
    """Return the folders of `-I FOLDER` options."""
    return tuple(Path(folder) for option, folder in pairwise(options) if option == "-I")
