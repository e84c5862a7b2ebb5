"""A source with the headers it includes, with the launches in all of them rewritten.

Kernels and launches may stand in headers. A header is copied only if something in it is rewritten,
or it includes one that is; everything else is read where it lies. Copies include each other by
absolute path, so where a copy lies does not matter.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from opkit.toolchain.source.core_kinds import asks_core_kind
from opkit.toolchain.source.core_passes import core_passes
from opkit.toolchain.source.edits import kernel_edits
from opkit.toolchain.source.included import Include, SourceFile, source_files
from opkit.toolchain.source.kernel_names import mark_overloaded
from opkit.toolchain.source.kernel_unit import including
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
    scan_kernels,
)

__all__ = ["LaunchTree", "RewrittenFile", "read_kernels", "read_launch_tree"]

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
    files = source_files(source, include_dirs, foreign=tuple(foreign))
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
    # Bytes that are no UTF-8 come back as they were.
    files = source_files(source, include_dirs, foreign=tuple(foreign), errors="surrogateescape")
    dialect = _dialect_of(files)
    kernels = _kernels_of(files, dialect)
    edits = {
        path: [*launch_edits(file.text, file=file.path, kernels=kernels)]
        for path, file in files.items()
    }
    asks = any(ASK_KERNEL in edit.text for found in edits.values() for edit in found)
    for path, file in files.items():
        edits[path] += body_edits(file.text, dialect, asks_mode=asks)
        edits[path] += kernel_edits(file.text, dialect, keeps_aggregates=keeps_aggregates)
        if is_library:
            edits[path] += library_edits(file.text, dialect, kernels)
    if is_library:
        first, file = next(iter(files.items()))
        edits[first] += expression_edits(file.text, name_expressions, kernels)
    changed = _in_order(files, including(files, (path for path, found in edits.items() if found)))
    names = {path: copies / str(index) / path.name for index, path in enumerate(changed)}
    rewritten = []
    for path in changed:
        file = files[path]
        links = [_link(file, include, names) for include in file.includes]
        found = [*edits[path], *(edit for edit in links if edit is not None)]
        result = apply_edits(file.text, found, file=file.path)
        rewritten.append(RewrittenFile(file.path, names[path], result))
    passes = core_passes((file.text for file in files.values()), arch)
    return LaunchTree(files=tuple(rewritten), kernels=kernels, core_passes=passes)


def _dialect_of(files: Mapping[Path, SourceFile]) -> Dialect:
    """Return the macros that mark kernels, and whether kernels ask for the kind of core."""
    texts = [file.text for file in files.values()]
    markers = {found[1] for text in texts for found in _MARKER_MACRO.finditer(text)}
    is_by_kind = any(map(asks_core_kind, texts))
    return Dialect(Dialect().markers | markers, MIXED if is_by_kind else VECTOR)


def _kernels_of(files: Mapping[Path, SourceFile], dialect: Dialect) -> tuple[Kernel, ...]:
    kernels: dict[str, Kernel] = {}
    for file in files.values():
        for kernel in scan_kernels(file.text, dialect):
            kernels.setdefault(kernel.name, kernel)
    return mark_overloaded(kernels.values(), (file.text for file in files.values()), dialect)


def _in_order(files: Mapping[Path, SourceFile], changed: Collection[Path]) -> list[Path]:
    """Return the changed files, the source last; or none."""
    source, *headers = files
    return [*(path for path in headers if path in changed), source] if changed else []


def _link(file: SourceFile, include: Include, names: Mapping[Path, Path]) -> Edit | None:
    """Return the edit that makes a copy find what its original includes."""
    key = include.target.resolve()
    if key in names:
        return Edit(include.start, include.end, f'"{names[key]}"')
    # The copy lies elsewhere: what was found beside the original is named in full.
    if include.written[0] == '"' and (file.path.parent / include.name).is_file():
        return Edit(include.start, include.end, f'"{Path.cwd() / include.target}"')
    return None
