"""Libraries of operators: one repository, a folder an operator, headers that they share.

    LIBRARY/CMakeLists.txt
    LIBRARY/cmake/*.cmake                       include folders of the host code, from the root
    LIBRARY/common/inc/, common/include/        what host sources of all operators include
    LIBRARY/[experimental/]CATEGORY/OPERATOR/   op_host/, op_kernel/, op_graph/, op_api/, tests/

It is recognised by that shape: the outermost folder with both kinds of CMake files and operators
one or two folders below. A category may have headers of its own, in inc/ or common/inc/.

The vendor's build of such a library copies every operator's op_kernel/ beside the others', so
kernels include each other as `../OPERATOR/file.h`, and links all host sources into one library, so
one operator's host code calls what lies beside a header of another's. Here an operator is built by
itself: its own sources, and those that lie beside the headers which they include.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from opkit.toolchain.source import include_names, includes_in

__all__ = ["OperatorLibrary", "find_library", "find_operators"]

_COMMON = (Path("common") / "inc", Path("common") / "include")
_KERNEL_COMMON = (*_COMMON, _COMMON[1] / "kernel")
_EXPERIMENTAL = "experimental"
_INCLUDE_FOLDERS = re.compile(
    r"(?:set\s*\(\s*OP_(?:TILING|PROTO)_INCLUDE\b|\binclude_directories\s*\()([^)]*)\)"
)
# The variable is the library's root under one of its names, or the folder of the CMake file.
_FROM_FOLDER = re.compile(r"\$\{(\w+_DIR)\}((?:/[\w.-]+)*)")
_HERE = "CMAKE_CURRENT_SOURCE_DIR"
_SWITCHED_DEFINITION = re.compile(r"\$<\$<BOOL:\$\{(\w+)\}>:(\w+)>")
_SWITCHED_ON = re.compile(r"set\s*\(\s*(\w+)\s+(?:ON|TRUE)\s*\)")
# In calls that list sources, in one of its own, in what kernels' builds read, and in the list of
# operators to build.
_DEPENDENCIES = re.compile(
    r"(?:\bDEPENDENCIES|\badd_dependent_ops\s*\(|\bset\s*\(\s*\w+_depends\b"
    r"|\bset\s*\(\s*\w+\s+\$\{ASCEND_OP_NAME\})"
    r"((?:\s*\b[a-z][\w/]*)+)"
)
_OP_ADD = re.compile(r"\bOP_ADD\s*\(\s*(\w+)")
_OPERATORS = ("*/*/op_kernel", "*/op_kernel")
# Holds the operators that the library's generator of new ones copies.
_TEMPLATES = "scripts"
_SOURCE_SUFFIXES = (".cpp", ".cc")
# For chips with another instruction set; for the graph engine; for unit tests.
_FOREIGN_PARTS = frozenset(("arch35", "op_kernel", "tests", "test", "op_api", "op_kernel_aicpu"))


@dataclass(frozen=True)
class OperatorLibrary:
    """A repository of operators."""

    root: Path

    def host_definitions(self) -> tuple[str, ...]:
        """Return the macros of the host code that CMake switches on."""
        definitions = []
        for text in self._cmake_texts():
            switched_on = set(_SWITCHED_ON.findall(text))
            definitions += [
                name for switch, name in _SWITCHED_DEFINITION.findall(text) if switch in switched_on
            ]
        return tuple(dict.fromkeys(definitions))

    def host_includes(self, operator: Path) -> tuple[Path, ...]:
        """Return the include folders of an operator's host code, the nearest first.

        They are the same for all operators of a category, but for what DEPENDENCIES name, so that
        the sources which these share are compiled once.
        """
        above = self._above(operator)
        files = (
            *sorted((self.root / "cmake").glob("*.cmake")),
            *(folder / "CMakeLists.txt" for folder in (*above, self.root / "common")),
            *self._own_cmake(operator),
        )
        folders = (
            *above,
            *(self.root / name for name in _COMMON),
            *(named for file in files for named in self._include_folders(file)),
            *(folder / "op_host" for folder in self._dependencies(operator)),
        )
        return tuple(dict.fromkeys(folder for folder in folders if folder.is_dir()))

    def kernel_includes(self, operator: Path, *, cache: Path) -> tuple[Path, ...]:
        """Return the include folders of an operator's kernel.

        One of them is an empty folder between links to every op_kernel/, so that
        `../OPERATOR/file.h` leads to that operator's kernel as in the vendor's flat tree; and from
        a folder below op_kernel/ `../../OPERATOR/file.h` does.
        """
        below = self._flat_kernels(operator, cache=cache)
        return (
            operator / "op_kernel",
            below.parent,
            below,
            self.root,
            *(folder for name in _KERNEL_COMMON if (folder := self.root / name).is_dir()),
        )

    def dependency_sources(self, operator: Path) -> tuple[Path, ...]:
        """Return the sources of what it depends on (DEPENDENCIES) that concern this operator.

        Those of a folder of helpers, which defines no operator, all do; of another operator's
        sources, those that name this one or include a header of it.
        """
        own = [
            op
            for file in (operator / "op_host").glob("*_def*.cpp")
            for op in _OP_ADD.findall(_text(file))
        ]
        named_own = re.compile(rf"\b(?:{'|'.join(own) or '$^'})\b")
        return tuple(
            source
            for folder in self._dependencies(operator)
            for source in sorted((folder / "op_host").rglob("*.cpp"))
            if not _FOREIGN_PARTS & set(source.relative_to(self.root).parts)
            and (
                not any((folder / "op_host").glob("*_def*.cpp"))
                or named_own.search(_text(source))
                or self._includes_any_of(operator, source)
            )
        )

    def companion_sources(
        self, sources: Sequence[Path], includes: Sequence[Path]
    ) -> tuple[Path, ...]:
        """Return the sources that lie beside the headers which these include, and so on."""
        found: dict[Path, None] = {}
        seen: set[Path] = set()
        queue = list(sources)
        while queue:
            file = queue.pop()
            for header in self._included(file, includes):
                if header in seen:
                    continue
                seen.add(header)
                queue.append(header)
                for source in self._beside(header):
                    if source not in sources and source not in found:
                        found[source] = None
                        queue.append(source)
        return tuple(sorted(found))

    def _includes_any_of(self, operator: Path, source: Path) -> bool:
        names = include_names(_text(source))
        return any(
            Path(os.path.normpath(source.parent / name)).is_relative_to(operator) for name in names
        )

    def _dependencies(self, operator: Path) -> tuple[Path, ...]:
        """Return the folders of what an operator's CMake names behind DEPENDENCIES."""
        names = [
            name
            for file in self._own_cmake(operator)
            if file.is_file()
            for found in _DEPENDENCIES.findall(_text(file))
            for name in found.split()
        ]
        return tuple(folder for name in dict.fromkeys(names) for folder in self._folders_of(name))

    def _own_cmake(self, operator: Path) -> tuple[Path, ...]:
        return (operator / "CMakeLists.txt", operator / "op_host" / "CMakeLists.txt")

    def _above(self, operator: Path) -> tuple[Path, ...]:
        """Return the folders that an operator lies in, its category first, the root last."""
        return tuple(folder for folder in operator.parents if folder.is_relative_to(self.root))

    def _include_folders(self, file: Path) -> Iterable[Path]:
        """Yield the folders that a CMake file names for includes, from the root or from its own."""
        if not file.is_file():
            return
        for body in _INCLUDE_FOLDERS.findall(_text(file)):
            for variable, name in _FROM_FOLDER.findall(body):
                start = file.parent if variable == _HERE else self.root
                yield start / name.lstrip("/")

    def _cmake_texts(self) -> Iterable[str]:
        return (_text(file) for file in sorted((self.root / "cmake").glob("*.cmake")))

    def _folders_of(self, name: str) -> tuple[Path, ...]:
        patterns = (f"*/{name}", name, f"{_EXPERIMENTAL}/*/{name}")
        return tuple(found for pattern in patterns for found in self.root.glob(pattern))[:1]

    def _included(self, file: Path, includes: Sequence[Path]) -> Iterable[Path]:
        for include in includes_in(_text(file), file.parent, includes):
            if include.target.is_relative_to(self.root):
                yield include.target

    def _beside(self, header: Path) -> Iterable[Path]:
        if _FOREIGN_PARTS & set(header.relative_to(self.root).parts):
            return
        for suffix in _SOURCE_SUFFIXES:
            source = header.with_suffix(suffix)
            if source.is_file():
                yield source
        # Headers in inc/ or include/ have their sources in src/, in the same folder or another.
        for folder in header.relative_to(self.root).parents:
            if folder.name in ("inc", "include"):
                sources = self.root / folder.parent / "src"
                for suffix in _SOURCE_SUFFIXES:
                    yield from sorted(sources.rglob(header.with_suffix(suffix).name))

    def _flat_kernels(self, operator: Path, *, cache: Path) -> Path:
        is_experimental = _EXPERIMENTAL in operator.relative_to(self.root).parts
        areas = (_EXPERIMENTAL, "") if is_experimental else ("", _EXPERIMENTAL)
        kernels: dict[str, Path] = {}
        for area in areas:
            for pattern in _OPERATORS:
                for folder in sorted((self.root / area).glob(pattern)):
                    kernels.setdefault(folder.parent.name, folder)
        names = "\n".join(f"{name}\t{folder}" for name, folder in sorted(kernels.items()))
        flat = cache / "flat_kernels" / hashlib.sha256(names.encode()).hexdigest()[:16]
        empty = flat / "from" / "below"
        if not empty.is_dir():
            flat.mkdir(parents=True, exist_ok=True)
            for name, folder in kernels.items():
                _link(flat / name, folder)
            empty.mkdir(parents=True, exist_ok=True)
        return empty


def find_library(folder: Path) -> OperatorLibrary | None:
    """Return the library that a folder is of or in; None where it is of none."""
    for root in reversed((folder, *folder.parents)):
        if _is_library(root):
            return OperatorLibrary(root)
    return None


def _is_library(root: Path) -> bool:
    """Whether a folder has a library's CMake files, is no operator itself, and has some below."""
    return (
        (root / "CMakeLists.txt").is_file()
        and any((root / "cmake").glob("*.cmake"))
        and not (root / "op_host").is_dir()
        and any(
            (kernel.parent / "op_host").is_dir()
            for pattern in _OPERATORS
            for kernel in root.glob(pattern)
        )
    )


def find_operators(library: OperatorLibrary, below: Path | None = None) -> tuple[Path, ...]:
    """Return the folders of a library's operators that have a kernel and an OpDef, by path."""
    start = below or library.root
    return tuple(
        sorted(
            folder.parent
            for folder in start.rglob("op_kernel")
            if any((folder.parent / "op_host").glob("*_def*.cpp"))
            and _TEMPLATES not in folder.relative_to(library.root).parts
        )
    )


def _text(file: Path) -> str:
    return file.read_text(encoding="utf-8", errors="replace")


def _link(place: Path, target: Path) -> None:
    # Another build may be making the same links.
    with contextlib.suppress(FileExistsError):
        place.symlink_to(target, target_is_directory=True)
