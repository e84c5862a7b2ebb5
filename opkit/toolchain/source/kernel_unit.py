"""How an operator's kernel becomes part of its translation unit.

Most are included as they are. Where a source, or a header of it, says something that only the
vendor's compiler takes, the unit has their text, edited, in the place of the directive:

    #include "k.cpp"       #line 1 "op_kernel/k.cpp"
                           #line 1 "op_kernel/k.h"
                           ...
                           #line 2 "op_kernel/k.cpp"
                           ...

So every line keeps its file and its number.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from opkit.toolchain.source.edits import kernel_edits
from opkit.toolchain.source.included import Include, SourceFile, source_files
from opkit.toolchain.source.launch_rewrite import Edit, apply_edits

__all__ = ["edited_text", "kernel_source", "kernel_texts"]

_ONCE = re.compile(r"^[ \t]*#[ \t]*pragma[ \t]+once\b[^\n]*", re.MULTILINE)


def kernel_source(source: Path, root: Path, folders: Sequence[Path]) -> str:
    """Return what makes a kernel's source part of its unit: a directive, or edited text.

    Args:
        source: below `root`, which the compiler finds quoted names from.
        folders: of `-I`, searched behind the includer's own.
    """
    name = source.relative_to(root)
    inliner = _Inliner.of(source_files(source, folders), root, name)
    if not inliner.changed:
        return f'#include "{name.as_posix()}"\n'
    return f'{inliner.text()}\n#line 1 "behind {name.as_posix()}"\n'


def edited_text(text: str, name: str, root: Path, folders: Sequence[Path]) -> str:
    """Return the text of a unit as the compiler gets it, behind a `#line` directive.

    Args:
        name: what messages call the text; headers in quotes are looked for in `root`.
        folders: of `-I`.
    """
    files = source_files(root / "(text)", folders, text=text)
    return _Inliner.of(files, root, Path(name)).text()


def kernel_texts(source: Path, folders: Sequence[Path]) -> tuple[str, ...]:
    """Return the texts of a kernel's source and of all that it includes from these folders."""
    return tuple(file.text for file in source_files(source, folders).values())


@dataclass(frozen=True)
class _Inliner:
    root: Path
    name: Path
    """What the source is called."""
    files: Mapping[Path, SourceFile]
    edits: Mapping[Path, tuple[Edit, ...]]
    changed: frozenset[Path]
    """The files with edits, and those that include one."""

    @classmethod
    def of(cls, files: Mapping[Path, SourceFile], root: Path, name: Path) -> _Inliner:
        edits = {path: kernel_edits(file.text) for path, file in files.items()}
        changed = including(files, (path for path, found in edits.items() if found))
        return cls(root, name, files, edits, changed)

    def text(self) -> str:
        """Return the source's text with the changed files that it includes in their places."""
        return self._text_of(next(iter(self.files)), ())

    def _text_of(self, path: Path, includers: tuple[Path, ...]) -> str:
        file = self.files[path]
        edits = [*self.edits[path], *self._include_edits(path, includers)]
        once = _ONCE.search(file.text)
        if once is None:
            return apply_edits(file.text, edits, file=self._name(path)).text
        # A directive of its own has no meaning where the text is no file.
        edits.append(Edit(once.start(), once.end(), ""))
        guard = f"OPKIT_ONCE_{sorted(self.changed).index(path)}"
        text = apply_edits(file.text, edits, file=self._name(path)).text
        return f"#ifndef {guard}\n#define {guard}\n{text}\n#endif\n"

    def _include_edits(self, path: Path, includers: tuple[Path, ...]) -> list[Edit]:
        file = self.files[path]
        edits = []
        for include in file.includes:
            target = include.target.resolve()
            if target in (path, *includers):
                # Its guard makes nothing of it, and the file itself would not know of the guard.
                edits.append(Edit(*include.directive, ""))
            elif target in self.changed:
                inlined = self._text_of(target, (path, *includers))
                line = file.text.count("\n", 0, include.end) + 1
                behind = f'\n#line {line} "{self._name(path).as_posix()}"\n'
                edits.append(Edit(*include.directive, f"{inlined}{behind}"))
            elif _is_beside(include, file):
                # What was found beside the file is named in full: its text is elsewhere now.
                named = self._name_of(include.target).as_posix()
                edits.append(Edit(include.start, include.end, f'"{named}"'))
        return edits

    def _name(self, path: Path) -> Path:
        return self.name if path == next(iter(self.files)) else self._name_of(self.files[path].path)

    def _name_of(self, path: Path) -> Path:
        return path.relative_to(self.root) if path.is_relative_to(self.root) else path


def _is_beside(include: Include, file: SourceFile) -> bool:
    return Path(os.path.normpath(file.path.parent / include.name)) == include.target


def including(files: Mapping[Path, SourceFile], changed: Iterable[Path]) -> frozenset[Path]:
    """Return changed files, and those that include one."""
    found = set(changed)
    size = -1
    while size != len(found):
        size = len(found)
        for path, file in files.items():
            if any(one.target.resolve() in found for one in file.includes):
                found.add(path)
    return frozenset(found)
