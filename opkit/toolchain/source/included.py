"""What sources include by name, read as text: no compiler is asked, and of conditions only one is
looked at, whether a kernel is compiled for the CPU twin.

Whoever follows `#include` does it here. A name in quotes is looked for beside its file first, one
in angle brackets in the folders alone, as a compiler does.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from opkit.errors import BuildError, UsageError

__all__ = [
    "STRUCT",
    "Include",
    "SourceFile",
    "compiles_as_twin",
    "folders_of",
    "include_names",
    "included_texts",
    "includes_in",
    "source_files",
    "structs_in",
]

_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*("[^"\n]+"|<[^>\n]+>)', re.MULTILINE)
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


@dataclass(frozen=True)
class Include:
    """A directive, and the file that it leads to."""

    directive: tuple[int, int]
    """Where it begins and ends, up to its name's last quote."""
    written: str
    """The name with its quotes, at the directive's end."""
    target: Path

    @property
    def name(self) -> str:
        """The name without its quotes."""
        return self.written[1:-1]

    @property
    def start(self) -> int:
        """Where the name with its quotes begins."""
        return self.end - len(self.written)

    @property
    def end(self) -> int:
        """Where it ends."""
        return self.directive[1]


@dataclass(frozen=True)
class SourceFile:
    """A file of a unit."""

    path: Path
    """As its first includer leads to it."""
    text: str
    includes: tuple[Include, ...]
    """Those that lead to a file in one of the folders."""


def include_names(text: str, *, quoted_only: bool = False) -> list[str]:
    """Return the names that a text includes, without their quotes."""
    found = _INCLUDE.findall(text)
    return [name[1:-1] for name in found if name[0] == '"' or not quoted_only]


def includes_in(text: str, here: Path, folders: Sequence[Path]) -> tuple[Include, ...]:
    """Return the directives of a text that lead to a file in one of the folders.

    Args:
        here: the text's own folder, which names in quotes are looked for in first.
    """
    return tuple(
        Include(found.span(), found[1], target)
        for found in _INCLUDE.finditer(text)
        if (target := _target(found[1], here, folders)) is not None
    )


def _target(written: str, here: Path, folders: Sequence[Path]) -> Path | None:
    for folder in (here, *folders) if written[0] == '"' else folders:
        path = folder / written[1:-1]
        if path.is_file():
            short = Path(os.path.normpath(path))
            # Behind a symbolic link `..` is another folder than the one before it in the name.
            return short if short.is_file() and short.samefile(path) else path
    return None


def source_files(
    source: Path,
    folders: Sequence[Path],
    *,
    text: str | None = None,
    foreign: Sequence[Path] = (),
    errors: str = "replace",
) -> dict[Path, SourceFile]:
    """Return a source and everything that it includes from these folders, by real paths.

    The source is the first.

    Args:
        folders: of `-I`, in their order.
        text: the source's own; read from its file when None.
        foreign: folders of headers that are not looked into.
        errors: what becomes of bytes that are no UTF-8, as `bytes.decode` takes it.
    Raises:
        UsageError: the source cannot be read.
        BuildError: a header cannot be read.
    """
    others = tuple(str(path) + os.sep for path in foreign)
    files: dict[Path, SourceFile] = {}
    waiting = [source]
    while waiting:
        path = waiting.pop()
        real = path.resolve()
        if real in files:
            continue
        is_source = not files
        own = text if is_source and text is not None else _read(path, errors, is_source)
        includes = tuple(
            one
            for one in includes_in(own, path.parent, folders)
            if not others or not str(one.target.resolve()).startswith(others)
        )
        files[real] = SourceFile(path, own, includes)
        waiting += [one.target for one in includes]
    return files


def included_texts(text: str, here: Path, folders: Sequence[Path]) -> tuple[str, ...]:
    """Return a text and those of all files that it includes from these folders.

    Args:
        here: the folder that names in quotes are looked for in first.
    """
    files = source_files(here / "(text)", folders, text=text)
    return tuple(file.text for file in files.values())


def _read(path: Path, errors: str, is_source: bool) -> str:
    try:
        return path.read_bytes().decode("utf-8", errors=errors)
    except OSError as err:
        kind = UsageError if is_source else BuildError
        raise kind(f"{path}: cannot be read: {err.strerror}") from err


def _text(file: Path) -> str:
    return file.read_text(encoding="utf-8", errors="replace")


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
    files = list(source_files(source, folders).values())
    is_twin = _is_twin(files[0].text)
    for file in files:
        if _FOREIGN not in file.path.parts:
            structs.update(STRUCT.findall(file.text if is_twin else _without_twin(file.text)))
            named.update(_NAMED.findall(file.text))
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
