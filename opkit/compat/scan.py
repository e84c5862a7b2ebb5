"""The static half: which names of the API a tree of kernels uses, and which of them opkit has."""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from opkit.chips import DEFAULT_CHIP, Chip, find_chip
from opkit.compat.api import ApiName, api_names
from opkit.compat.conditionals import drop_other_chips
from opkit.compat.declared import Declared, read_declared
from opkit.compat.source import local_names, tokens_of, words_of
from opkit.errors import UsageError
from opkit.toolchain import include_names, plain_code

__all__ = [
    "LATER_FOLDER",
    "KernelNames",
    "ScanReport",
    "Want",
    "find_kernels",
    "names_used",
    "scan",
]

LATER_FOLDER = "arch35"
"""Where operator repositories keep code for the architecture 3510."""
_LATER = re.compile(rf"(?:^|/){LATER_FOLDER}(?:/|$)")
_TESTS = re.compile(r"(?:^|/)tests?/")
_SOURCES = (".asc", ".cpp", ".cce", ".cc")
_KERNEL_FOLDER = "op_kernel"
_NO_FUNCTIONS = ("type/enum", "high-level type", "infra", "macro/const")
_HARD_SPACES = ("Std", "Reg", "MicroAPI", "Simt")
_AFTER_A_FUNCTION = ("(", "<")


@dataclass(frozen=True)
class KernelNames:
    """What one kernel uses."""

    kernel: str
    """Its file, from the scanned folder."""
    used: tuple[str, ...]
    """Names of the API, as the list spells them, or identifiers after `AscendC::`."""
    missing: tuple[str, ...]
    """Those that opkit does not declare."""


@dataclass(frozen=True)
class Want:
    """A name that opkit lacks, and who wants it."""

    name: str
    wanted_by: int
    """How many kernels or samples use it."""
    alone: int
    """How many of them lack nothing else."""


@dataclass(frozen=True)
class ScanReport:
    """What a tree of kernels uses."""

    kernels: tuple[KernelNames, ...]
    missing: tuple[Want, ...]
    """Most wanted first."""
    other_chips: tuple[str, ...] = ()
    """Kernels left out: what they include is for a later architecture."""

    @property
    def complete(self) -> int:
        """How many kernels miss no name."""
        return sum(not kernel.missing for kernel in self.kernels)


def find_kernels(folder: Path) -> tuple[Path, ...]:
    """Return the kernel sources below a folder, but those in arch35 folders and tests.

    An operator repository keeps them as `op_kernel/*.cpp`; samples are `*.asc`. Where there are
    neither, every C++ source is taken that includes `kernel_operator.h`.
    """
    sources = [
        path
        for path in sorted(folder.rglob("*"))
        if path.suffix in _SOURCES
        and not _LATER.search(path.relative_to(folder).as_posix())
        and not _TESTS.search(path.relative_to(folder).as_posix())
        and path.is_file()
    ]
    chosen = [
        path for path in sources if path.suffix == ".asc" or path.parent.name == _KERNEL_FOLDER
    ]
    return tuple(chosen) or tuple(path for path in sources if "kernel_operator.h" in _read(path))


def scan(folder: Path, *, chip: Chip | None = None) -> ScanReport:
    """Return which names the kernels below a folder use, and which of them opkit has.

    Raises:
        UsageError: there is no kernel.
        SetupError: there is no compiler, which knows what opkit's headers declare.
    """
    chosen = chip or find_chip(DEFAULT_CHIP)
    kernels = find_kernels(folder)
    if not kernels:
        raise UsageError(
            f"{folder}: has no kernel sources",
            help="kernels are *.asc, op_kernel/*.cpp, or .cpp that includes kernel_operator.h",
        )
    # Kernels of a library share headers, which are taken apart once.
    read = functools.cache(functools.partial(_Source.read, chip=chosen))
    units = {kernel: _Unit.read(kernel, folder, read) for kernel in kernels}
    names = {kernel: kernel.relative_to(folder).as_posix() for kernel in kernels}
    ours = {names[kernel]: unit for kernel, unit in units.items() if not unit.is_later}
    others = tuple(name for name in names.values() if name not in ours)
    used = {name: names_used(unit.tokens) for name, unit in ours.items()}
    return report_of(used, chip=chosen, other_chips=others)


def report_of(
    used: Mapping[str, Collection[str]],
    *,
    chip: Chip | None = None,
    other_chips: tuple[str, ...] = (),
) -> ScanReport:
    """Return the report for kernels whose names are known."""
    listed = {name.text for name in api_names()}
    extra = {name for names in used.values() for name in names} - listed
    declared = read_declared(extra, chip=chip)
    kernels = tuple(
        KernelNames(kernel, tuple(sorted(names)), _missing(names, declared))
        for kernel, names in used.items()
    )
    return ScanReport(kernels, wants([kernel.missing for kernel in kernels]), other_chips)


def wants(lacking: Iterable[Collection[str]]) -> tuple[Want, ...]:
    """Return what is missing, most wanted first."""
    total: Counter[str] = Counter()
    alone: Counter[str] = Counter()
    for names in lacking:
        total.update(names)
        if len(names) == 1:
            alone.update(names)
    order = sorted(total, key=lambda name: (-total[name], -alone[name], name))
    return tuple(Want(name, total[name], alone[name]) for name in order)


def names_used(tokens: list[str]) -> frozenset[str]:
    """Return the names of the API that code uses, given its tokens.

    A name that the code defines itself is its own, unless it stands behind `AscendC::`.
    """
    own = local_names(tokens)
    table = _table()
    found: set[str] = set()
    for word in words_of(tokens):
        if word.before in (".", "->"):
            name = table.methods.get(word.text)
            if name and word.after in ("(", "<") and word.text not in own:
                found.add(name)
            continue
        if word.qualifier in _HARD_SPACES:
            space = "Reg" if word.qualifier == "MicroAPI" else word.qualifier
            found.add(f"{space}::{word.text}")
            continue
        if word.qualifier == "AscendC":
            listed = word.text in table.free
            if listed or (word.text not in own and word.after != "::"):
                found.add(table.free.get(word.text, word.text))
            continue
        if word.qualifier or word.text in own:
            continue
        name = table.free.get(word.text)
        if name and (name not in table.functions or word.after in _AFTER_A_FUNCTION):
            found.add(name)
            continue
        if word.text.startswith(table.stems):
            found.update(
                text for stem, text in table.patterns.items() if word.text.startswith(stem)
            )
    return frozenset(found)


@dataclass(frozen=True)
class _Table:
    """The API list by what a word in code may be."""

    free: Mapping[str, str]
    methods: Mapping[str, str]
    patterns: Mapping[str, str]
    functions: frozenset[str]

    @functools.cached_property
    def stems(self) -> tuple[str, ...]:
        return tuple(self.patterns)

    @classmethod
    def of(cls, names: Iterable[ApiName]) -> _Table:
        plain = [name for name in names if not name.namespace]
        return cls(
            free={
                name.identifier: name.text
                for name in plain
                if not name.is_method and not name.is_pattern
            },
            methods={name.identifier: name.text for name in plain if name.is_method},
            patterns={name.identifier: name.text for name in plain if name.is_pattern},
            functions=frozenset(
                name.text
                for name in plain
                # Macros stand without brackets: `if ASCEND_IS_AIV {`.
                if name.kind not in _NO_FUNCTIONS and not name.identifier.isupper()
            ),
        )


@functools.cache
def _table() -> _Table:
    return _Table.of(api_names())


@dataclass(frozen=True)
class _Source:
    """One file."""

    tokens: list[str]
    includes: tuple[str, ...]
    """What it includes between quotes."""

    @classmethod
    def read(cls, path: Path, *, chip: Chip) -> _Source:
        # Literals hold the names of includes: those are read before they are blanked.
        text = drop_other_chips(_without_comments(_read(path)), chip)
        includes = tuple(include_names(text, quoted_only=True))
        return cls(tokens_of(plain_code(text)), includes)


@dataclass(frozen=True)
class _Unit:
    """One kernel with what it includes of its own tree."""

    tokens: list[str]
    is_later: bool
    """Whether what it includes is for a later architecture; such a kernel is not read on."""

    @classmethod
    def read(cls, kernel: Path, root: Path, read: Callable[[Path], _Source]) -> _Unit:
        top = root.resolve()
        seen: set[Path] = set()
        tokens: list[str] = []
        waiting = [kernel]
        while waiting:
            path = waiting.pop()
            real = path.resolve()
            if real in seen:
                continue
            seen.add(real)
            source = read(path)
            if any(_LATER.search(name) for name in source.includes):
                return cls([], is_later=True)
            tokens += source.tokens
            for name in source.includes:
                target = _find(name, path, root)
                if target is not None and target.resolve().is_relative_to(top):
                    waiting.append(target)
        return cls(tokens, is_later=False)


def _find(name: str, includer: Path, root: Path) -> Path | None:
    for folder in (includer.parent, *includer.parents):
        candidate = folder / name
        if candidate.is_file():
            return candidate
        if folder == root:
            break
    return None


def _missing(names: Iterable[str], declared: Declared) -> tuple[str, ...]:
    return tuple(sorted(name for name in names if name not in declared))


def _without_comments(text: str) -> str:
    """Return `text` with its comments blanked and its literals kept."""
    pattern = re.compile(r'"(?:\\.|[^"\\\n])*"|//(?:\\\r?\n|[^\n])*|/\*.*?(?:\*/|\Z)', re.DOTALL)
    return pattern.sub(
        lambda found: found[0] if found[0][0] == '"' else "\n" * found[0].count("\n") or " ", text
    )


def _read(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8", errors="replace")
    except OSError as err:
        # A kernel that nobody read would count as one that misses nothing.
        raise UsageError(f"{path}: cannot be read: {err.strerror}") from err
