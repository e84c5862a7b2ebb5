"""A source with the headers it includes, with the launches in all of them rewritten.

Kernels and launches may stand in headers. A header is copied only if something in it is rewritten,
or it includes one that is; everything else is read where it lies. Copies include each other by
absolute path, so where a copy lies does not matter.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from opkit.errors import BuildError, UsageError
from opkit.toolchain.source.aggregates import aggregate_edits
from opkit.toolchain.source.core_kinds import asks_core_kind
from opkit.toolchain.source.core_passes import core_passes
from opkit.toolchain.source.edits import kernel_edits
from opkit.toolchain.source.kernel_names import mark_overloaded
from opkit.toolchain.source.launch_rewrite import (
    ASK_KERNEL,
    MIXED,
    VECTOR,
    Dialect,
    Edit,
    Kernel,
    Rewritten,
    apply_edits,
    body_edits,
    expression_edits,
    launch_edits,
    library_edits,
    print_edits,
    scan_kernels,
)

__all__ = ["LaunchTree", "RewrittenFile", "read_kernels", "read_launch_tree"]

_INCLUDE = re.compile(r"^[ \t]*#[ \t]*include[ \t]*(?P<name>\"[^\"\n]+\"|<[^>\n]+>)", re.MULTILINE)
_MARKER_MACRO = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)[ \t]+.*\b__global__\b", re.MULTILINE)


@dataclass(frozen=True)
class RewrittenFile:
    """One file of the user's as the compiler gets it."""

    source: Path
    """The user's file."""
    copy: Path
    """Where its rewritten text belongs."""
    rewritten: Rewritten


@dataclass(frozen=True)
class LaunchTree:
    """What has to be written before the compiler can run."""

    files: tuple[RewrittenFile, ...]
    """Empty where nothing has launches; the source itself is the last one otherwise."""
    kernels: tuple[Kernel, ...]
    core_passes: tuple[str, ...] = ()
    """The kinds of cores that it is compiled for one by one; see `core_passes`."""

    @property
    def source_copy(self) -> Path | None:
        """Where the source's rewritten text belongs; None: compile the source as it is."""
        return self.files[-1].copy if self.files else None


@dataclass
class _File:
    path: Path
    text: str
    includes: list[tuple[int, int, str, Path]] = field(default_factory=list)
    """Where a name with its quotes stands, the name, and the file that it leads to."""
    edits: tuple[Edit, ...] = ()


def read_kernels(
    source: Path, *, include_dirs: Sequence[Path] = (), foreign: Iterable[Path] = ()
) -> tuple[Kernel, ...]:
    """Return the kernels that a source and the headers that it includes declare or define.

    Args:
        include_dirs: folders of `-I`, searched in order.
        foreign: folders whose headers have no kernels and are not looked into.
    Raises:
        UsageError: the source cannot be read.
    """
    files = _read_all(source, include_dirs, tuple(str(path) + os.sep for path in foreign))
    return _kernels_of(files, _dialect_of(files))


def read_launch_tree(
    source: Path,
    *,
    include_dirs: Sequence[Path],
    foreign: Iterable[Path],
    copies: Path,
    is_library: bool = False,
    name_expressions: Sequence[str] = (),
    keeps_aggregates: bool = False,
    arch: int,
) -> LaunchTree:
    """Return the rewritten files of a translation unit; writes nothing.

    Args:
        source: the user's file, as the user names it.
        include_dirs: folders of `-I`, searched in order.
        foreign: folders whose headers have no launches and are not looked into.
        copies: an absolute folder that the rewritten files will be written to.
        is_library: enter every kernel into the list that a kernel library exports.
        name_expressions: for a library, the kernels of templates that it has.
        keeps_aggregates: have C++20 take what C++17 takes for aggregates.
        arch: `__NPU_ARCH__`.
    Raises:
        UsageError: the source cannot be read.
        BuildError: a launch cannot be read; has its position.
    """
    foreign_dirs = tuple(str(path) + os.sep for path in foreign)
    files = _read_all(source, include_dirs, foreign_dirs)
    dialect = _dialect_of(files)
    kernels = _kernels_of(files, dialect)
    for file in files.values():
        file.edits = launch_edits(file.text, file=file.path, kernels=kernels)
    asks = any(ASK_KERNEL in edit.text for file in files.values() for edit in file.edits)
    for file in files.values():
        file.edits += body_edits(file.text, dialect, asks_mode=asks)
        file.edits += print_edits(file.text, dialect)
        file.edits += kernel_edits(file.text, dialect)
        if keeps_aggregates:
            file.edits += aggregate_edits(file.text)
    if is_library:
        for file in files.values():
            file.edits += library_edits(file.text, dialect, kernels)
        first = next(iter(files.values()))
        first.edits += expression_edits(first.text, name_expressions, kernels)
    changed = _changed(files)
    names = {path: copies / str(index) / path.name for index, path in enumerate(changed)}
    rewritten = []
    for path in changed:
        file = files[path]
        links = [_link(file, include, files, names) for include in file.includes]
        edits = [*file.edits, *(edit for edit in links if edit is not None)]
        result = apply_edits(file.text, edits, file=file.path)
        rewritten.append(RewrittenFile(file.path, names[path], result))
    passes = core_passes((file.text for file in files.values()), arch)
    return LaunchTree(files=tuple(rewritten), kernels=kernels, core_passes=passes)


def _read_all(
    source: Path, include_dirs: Sequence[Path], foreign: tuple[str, ...]
) -> dict[Path, _File]:
    """Return every file of the user's in the unit, by real path, the source first."""
    files: dict[Path, _File] = {}
    waiting = [source]
    while waiting:
        path = waiting.pop()
        key = path.resolve()
        if key in files:
            continue
        file = _File(path, _read(path, is_source=path is source))
        files[key] = file
        for found in _INCLUDE.finditer(file.text):
            name = found["name"]
            target = _find(name, path.parent, include_dirs)
            if target is None or str(target.resolve()).startswith(foreign):
                continue
            file.includes.append((found.start("name"), found.end("name"), name, target))
            waiting.append(target)
    return files


def _dialect_of(files: Mapping[Path, _File]) -> Dialect:
    """Return the macros that mark kernels, and whether kernels ask for the kind of core."""
    texts = [file.text for file in files.values()]
    markers = {found[1] for text in texts for found in _MARKER_MACRO.finditer(text)}
    is_by_kind = any(map(asks_core_kind, texts))
    return Dialect(Dialect().markers | markers, MIXED if is_by_kind else VECTOR)


def _kernels_of(files: Mapping[Path, _File], dialect: Dialect) -> tuple[Kernel, ...]:
    kernels: dict[str, Kernel] = {}
    for file in files.values():
        for kernel in scan_kernels(file.text, dialect):
            kernels.setdefault(kernel.name, kernel)
    return mark_overloaded(kernels.values(), (file.text for file in files.values()), dialect)


def _read(path: Path, *, is_source: bool) -> str:
    try:
        # Bytes that are no UTF-8 come back as they were.
        return path.read_bytes().decode("utf-8", errors="surrogateescape")
    except OSError as err:
        if is_source:
            raise UsageError(f"{path}: cannot be read: {err.strerror}") from err
        raise BuildError(f"{path}: cannot be read: {err.strerror}") from err


def _find(name: str, here: Path, include_dirs: Sequence[Path]) -> Path | None:
    folders = ([here] if name.startswith('"') else []) + list(include_dirs)
    for folder in folders:
        candidate = folder / name[1:-1]
        if candidate.is_file():
            return candidate
    return None


def _changed(files: dict[Path, _File]) -> list[Path]:
    """Return the files with launches and those that include one, the source last; or none."""
    changed = {path for path, file in files.items() if file.edits}
    grown = True
    while grown:
        grown = False
        for path, file in files.items():
            targets = {target.resolve() for _, _, _, target in file.includes}
            if path not in changed and targets & changed:
                changed.add(path)
                grown = True
    source, *headers = files
    return [*(path for path in headers if path in changed), source] if changed else []


def _link(
    file: _File,
    include: tuple[int, int, str, Path],
    files: dict[Path, _File],
    names: dict[Path, Path],
) -> Edit | None:
    """Return the edit that makes a copy find what its original includes."""
    start, end, name, target = include
    key = target.resolve()
    if key in names:
        return Edit(start, end, f'"{names[key]}"')
    # The copy lies elsewhere: what was found beside the original is named in full.
    beside = (file.path.parent / name[1:-1]).is_file()
    if name.startswith('"') and beside:
        return Edit(start, end, f'"{Path.cwd() / target}"')
    return None
