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
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from opkit.toolchain.source.edits import kernel_edits
from opkit.toolchain.source.included import INCLUDE, include_target, included_files
from opkit.toolchain.source.launch_rewrite import Edit, apply_edits

__all__ = ["kernel_source", "kernel_texts"]

_ONCE = re.compile(r"^[ \t]*#[ \t]*pragma[ \t]+once\b[^\n]*", re.MULTILINE)


def kernel_source(source: Path, root: Path, folders: Sequence[Path]) -> str:
    """Return what makes a kernel's source part of its unit: a directive, or edited text.

    Args:
        source: below `root`, which the compiler finds quoted names from.
        folders: of `-I`, searched behind the includer's own.
    """
    name = source.relative_to(root)
    files = _read(source, folders)
    changed = _changed(files)
    if source not in changed:
        return f'#include "{name.as_posix()}"\n'
    text = _Inliner(root, files, changed).text_of(source, ())
    return f'{text}\n#line 1 "behind {name.as_posix()}"\n'


def kernel_texts(source: Path, folders: Sequence[Path]) -> tuple[str, ...]:
    """Return the texts of a kernel's source and of all that it includes from these folders."""
    return tuple(text for _, text in included_files(source, folders))


@dataclass(frozen=True)
class _File:
    text: str
    includes: tuple[tuple[re.Match[str], Path], ...]
    """Directives, and what they lead to."""
    edits: tuple[Edit, ...]


def _read(source: Path, folders: Sequence[Path]) -> dict[Path, _File]:
    files: dict[Path, _File] = {}
    waiting = [source]
    while waiting:
        path = waiting.pop()
        if path in files:
            continue
        text = path.read_text(encoding="utf-8", errors="replace")
        targets = [
            (found, target)
            for found in INCLUDE.finditer(text)
            if (target := include_target(found[1], path.parent, folders)) is not None
        ]
        files[path] = _File(text, tuple(targets), kernel_edits(text))
        waiting += [target for _, target in targets]
    return files


def _changed(files: Mapping[Path, _File]) -> frozenset[Path]:
    """Return the files with edits, and those that include one."""
    changed = {path for path, file in files.items() if file.edits}
    size = -1
    while size != len(changed):
        size = len(changed)
        for path, file in files.items():
            if any(target in changed for _, target in file.includes):
                changed.add(path)
    return frozenset(changed)


@dataclass(frozen=True)
class _Inliner:
    root: Path
    files: Mapping[Path, _File]
    changed: frozenset[Path]

    def text_of(self, path: Path, includers: tuple[Path, ...]) -> str:
        """Return a file's text with the changed ones that it includes in their places."""
        file = self.files[path]
        edits = [*file.edits, *self._include_edits(path, includers)]
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
        for found, target in file.includes:
            if target in (path, *includers):
                # Its guard makes nothing of it, and the file itself would not know of the guard.
                edits.append(Edit(found.start(), found.end(), ""))
            elif target in self.changed:
                inlined = self.text_of(target, (path, *includers))
                line = file.text.count("\n", 0, found.end()) + 1
                behind = f'\n#line {line} "{self._name(path).as_posix()}"\n'
                edits.append(Edit(found.start(), found.end(), f"{inlined}{behind}"))
            elif Path(os.path.normpath(path.parent / found[1])) == target:
                # What was found beside the file is named in full: its text is elsewhere now.
                edits.append(Edit(found.start(1), found.end(1), self._name(target).as_posix()))
        return edits

    def _name(self, path: Path) -> Path:
        return path.relative_to(self.root) if path.is_relative_to(self.root) else path
