"""Operator projects without a pyproject.toml: msopgen's layout, and public projects like it.

Their operators are what their host sources register; their CMake files say which kernel file is
whose. What those say is either read out of them, or listed by opkit's own `npu_op_package`, which
knows every variable (emulator/cmake/npu_op.cmake).
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from opkit.chips import all_chips
from opkit.errors import UsageError
from opkit.schema import snake_case
from opkit.toolchain.flags import sync_macros
from opkit.toolchain.projects.operator_library import OperatorLibrary, find_library
from opkit.toolchain.source import folders_of, kernel_texts, scan_kernels

__all__ = [
    "LISTING_SUFFIX",
    "KernelFile",
    "Tree",
    "read_folder",
    "read_kernel_options",
    "read_listing",
]

LISTING_SUFFIX = ".operators"
"""Suffix of the files that `npu_op_package` writes."""

_HOST, _KERNEL = "op_host", "op_kernel"
_KEYWORDS = frozenset(
    [
        "OP_TYPE",
        "KERNEL_DIR",
        "KERNEL_FILE",
        "COMPUTE_UNIT",
        "OPTIONS",
        "KERNEL_SRC",
        "COMPUTE_UNITS",
        "SIMPLIFIED_KEY",
        "AUTO_SYNC",
        "IMPL_MODE",
    ]
)
_SUFFIXES = frozenset((".cpp", ".cc", ".cxx"))
# Not the operators' own: unit tests, and sources for chips with another instruction set.
_FOREIGN_FOLDERS = frozenset(("tests", "test", "ut", "arch35", "op_api", "build", "build_out"))
# What computes with the vendor's tilings for those; opkit's headers have their names alone.
_FOREIGN_TILING = re.compile(
    r"\bElewiseBaseTiling\s+\w|\bDoTiling\s*<|\bBroadcastBaseTiling\s*<|\bTiling4ReduceOp\s*<"
    r"|\bGEN_REDUCE_TILING_KEY\s*\("
)
# What a source says that is another chip's by its name, beside those of the operator itself.
_FOREIGN_SOURCE = re.compile(r"_arch35\b")
_FOREIGN_HEADER = re.compile(r'#include\s+"[^"]*\barch35/')
_REGISTERS = re.compile(r"\bIMPL_OP(?:_\w+)?\s*\(|\bOP_ADD\s*\(")
_KERNEL_SOURCES = re.compile(r"npu_op_kernel_sources\s*\(([^)]*)\)")
_COMPILE_OPTIONS = re.compile(
    r"(?:add_ops_compile_options|npu_op_kernel_options)\s*\(([^)]*)\)", re.DOTALL
)
_LIBRARY_KERNEL_SOURCES = re.compile(r"add_kernel_sources\s*\(([^)]*)\)")
# Of libraries: which folder of op_host/ tiles for which chips, in the same order.
_MODULES = re.compile(r"add_(?:all_)?modules_sources\s*\(([^)]*)\)")
_SET = re.compile(r"\bset\s*\(\s*(\w+)\s+([^)]*)\)")
_KEYWORD = re.compile(r"[A-Z_]+")
_VARIABLE = re.compile(r"\$\{(\w+)\}")
_COMMENT = re.compile(r"#[^\n]*")
# What a public library's own build scripts do: kernels are compiled once in each of the modes that
# IMPL_MODE names, separated by commas, each with a macro; the first is what a call takes that asks
# for none, and the mode of an operator that names none. `optional` stands for no mode.
_MODE_MACROS = {
    "high_performance": "-DHIGH_PERFORMANCE=1",
    "high_precision": "-DHIGH_PRECISION=1",
}
_USUAL_MODES = "high_performance,optional"
# AUTO_SYNC of add_kernel_sources, as the compiler's option: what stands there is a truth value.
_AUTO_SYNC_WORDS = {"false": ("--cce-auto-sync=off",), "off": ("--cce-auto-sync=off",)}
# What the graph engine calls instead of a kernel, to call aclnn functions: nothing here does.
_FALLBACK = re.compile(r"\bOpExecute(?:Prepare)?Func\s*\(")
# Data types of the graph are told to the engine in files of this name.
_GRAPH_SOURCES = "op_graph/*_infer*.cpp"


@dataclass(frozen=True)
class KernelFile:
    """Where an operator's kernel lies."""

    source: Path
    entry: str
    """The function that is launched."""


@dataclass(frozen=True)
class _Named:
    """What CMake says for one operator: its kernel file, or options for its compiler."""

    op: str
    """Its OpDef name; `ALL` for options of every operator."""
    units: tuple[str, ...]
    """The chips that it counts for, such as `ascend910b`; empty for all."""
    words: tuple[str, ...]
    """The file, or the options."""

    def counts_for(self, op: str, soc_config: str) -> bool:
        is_for_chip = any(unit.lower().startswith(soc_config) for unit in self.units)
        return self.op in (op, "ALL") and (is_for_chip or not self.units)


@dataclass(frozen=True)
class Tree:
    """The sources of a project, and what its CMake files say of them."""

    root: Path
    """Every source lies below it."""
    host_sources: tuple[Path, ...]
    """What registers the operators."""
    kernel_sources: tuple[Path, ...]
    """Where kernels that CMake does not name are looked for."""
    host_options: tuple[str, ...] = ()
    """Include folders and macros for the host sources."""
    named_kernels: tuple[_Named, ...] = ()
    named_options: tuple[_Named, ...] = ()
    own_host_options: tuple[str, ...] = ()
    """Further host options for the operator's own sources, where it shares others."""
    kernel_includes: tuple[str, ...] = ()
    """Include folders of the kernels."""
    named_modes: tuple[_Named, ...] = ()
    """The implementation modes of a library's operator, such as `high_performance,optional`."""

    def find_kernel(self, op: str, op_file: str | None, *, soc_config: str) -> KernelFile:
        """Return an operator's kernel.

        CMake's `npu_op_kernel_sources(OP_TYPE ... KERNEL_FILE ...)` counts first, then the file
        that the OpDef names, then a file named like the operator, then one whose entry is.

        Args:
            soc_config: the family of chips, such as `ascend910b`.
        Raises:
            UsageError: there is none.
        """
        name = snake_case(op)
        named = [
            Path(given.words[0])
            for given in self.named_kernels
            if given.counts_for(op, soc_config) and Path(given.words[0]).is_file()
        ]
        candidates = named[:1]
        for stem in (op_file, name):
            candidates += [path for path in self.kernel_sources if path.stem == stem]
        candidates += self.kernel_sources
        for path in candidates:
            is_its_own = path in named or path.stem in (op_file, name)
            entries = self._entries(path, with_included=is_its_own)
            if name in entries:
                return KernelFile(path, name)
            if is_its_own and len(set(entries)) == 1:
                return KernelFile(path, entries[0])
        raise UsageError(
            f"{self.root}: {op} has no kernel: no function {name} in {self._where()}",
            help=f"name the file {name}.cpp, or its function {name}",
        )

    def _entries(self, source: Path, *, with_included: bool) -> list[str]:
        """Return the functions that a source launches, or else those that its headers do.

        A header may define the function, or a macro that does so for each chip's source.
        """
        entries = _kernels_in(_text(source))
        if entries or not with_included:
            return entries
        return [
            entry
            for text in kernel_texts(source, folders_of(self.kernel_includes))
            for entry in _kernels_in(text)
        ]

    def kernel_options(self, op: str, *, soc_config: str) -> tuple[str, ...]:
        """Return an operator's kernel's macros, as CMake gives them, and its include folders."""
        named = _options_of(self.named_options, op, soc_config)
        return (*named, *self.kernel_includes)

    def mode_macros(self, op: str, *, soc_config: str) -> tuple[str, ...]:
        """Return the macro of the mode that a library's kernel is compiled in, if it has one.

        Builds of a library's unit tests define none.
        """
        for given in self.named_modes:
            if given.counts_for(op, soc_config):
                mode = given.words[0].split(",")[0]
                return (_MODE_MACROS[mode],) if mode in _MODE_MACROS else ()
        return ()

    def _where(self) -> str:
        if (self.root / _KERNEL).is_dir():
            return f"{_KERNEL}/"
        return ", ".join(path.name for path in self.kernel_sources) or "no file at all"


def read_folder(root: Path, *, cache: Path) -> Tree | None:
    """Return the tree at a folder in msopgen's layout; None where there is none.

    The tree of an operator of a library has the library's folder as its root.

    Args:
        cache: where links to a library's kernels are kept.
    """
    host = _sources(root / _HOST, own=_tiling_folders(root))
    if not host or not (root / _KERNEL).is_dir():
        return None
    kernels: list[_Named] = []
    options: list[_Named] = []
    for text in _cmake_texts(root):
        for body in _KERNEL_SOURCES.findall(text):
            given = _keywords(body.split())
            if "OP_TYPE" in given and "KERNEL_FILE" in given:
                folder = given.get("KERNEL_DIR", [""])[0]
                path = root / _KERNEL / folder / given["KERNEL_FILE"][0]
                units = tuple(given.get("COMPUTE_UNIT", ()))
                kernels.append(_Named(given["OP_TYPE"][0], units, (str(path),)))
        options += _named_options(text)
    tree = Tree(root, host, _sources(root / _KERNEL), (), tuple(kernels), tuple(options))
    library = find_library(root)
    return tree if library is None else _library_tree(library, root, tree, cache=cache)


def read_kernel_options(root: Path, op: str, *, soc_config: str) -> tuple[str, ...]:
    """Return the macros that a project's CMake files give an operator's kernel."""
    named = [given for text in _cmake_texts(root) for given in _named_options(text)]
    return _options_of(named, op, soc_config)


def _named_options(text: str) -> Iterator[_Named]:
    for body in _COMPILE_OPTIONS.findall(text):
        words = shlex.split(body)
        given = _keywords(words)
        # add_ops_compile_options names the operator first, npu_op_kernel_options a target.
        before = words[: min(words.index(key) for key in given)] if given else []
        for op in before:
            units = tuple(given.get("COMPUTE_UNIT", ()))
            yield _Named(op, units, tuple(given.get("OPTIONS", ())))


def _options_of(named: Iterable[_Named], op: str, soc_config: str) -> tuple[str, ...]:
    """Return what counts here of an operator's options."""
    words = [word for given in named if given.counts_for(op, soc_config) for word in given.words]
    macros = [word for word in words if word.startswith(("-D", "-U", "-std="))]
    return (*dict.fromkeys(macros), *sync_macros(words))


def _is_of_another_chip(source: Path) -> bool:
    """Whether a host source computes what only other chips' kernels take.

    What registers functions of the operator is the operator's own, whatever its name.
    """
    text = _text(source)
    if _FOREIGN_TILING.search(text):
        return True
    is_named = _FOREIGN_SOURCE.search(source.stem) and _FOREIGN_HEADER.search(text)
    return bool(is_named) and not _REGISTERS.search(text)


def _library_tree(library: OperatorLibrary, operator: Path, tree: Tree, *, cache: Path) -> Tree:
    own_includes = (operator / _HOST,)
    includes = library.host_includes(operator)
    found = (
        *tree.host_sources,
        *sorted(operator.glob(_GRAPH_SOURCES)),
        *library.dependency_sources(operator),
    )
    own = tuple(path for path in found if not _FALLBACK.search(_text(path)))
    sources = (*own, *library.companion_sources(own, (*own_includes, *includes)))
    kernels, options = list(tree.named_kernels), list(tree.named_options)
    modes = []
    for text in _cmake_texts(operator):
        for body in _LIBRARY_KERNEL_SOURCES.findall(text):
            given = _keywords(shlex.split(body))
            units = tuple(given.get("COMPUTE_UNITS", ()))
            if "KERNEL_SRC" in given:
                file = operator / _KERNEL / given["KERNEL_SRC"][0]
                kernels.append(_Named("ALL", units, (str(file.with_suffix(".cpp")),)))
            synced = _AUTO_SYNC_WORDS.get(" ".join(given.get("AUTO_SYNC", ())).lower(), ())
            options.append(_Named("ALL", units, (*given.get("OPTIONS", ()), *synced)))
            modes.append(_Named("ALL", units, tuple(given.get("IMPL_MODE", [_USUAL_MODES]))))
    return replace(
        tree,
        root=library.root,
        host_sources=tuple(path for path in sources if not _is_of_another_chip(path)),
        host_options=(
            *(f"-D{name}" for name in library.host_definitions()),
            *_include_options(includes),
        ),
        own_host_options=_include_options(own_includes),
        named_kernels=tuple(kernels),
        named_options=tuple(options),
        kernel_includes=_include_options(library.kernel_includes(operator, cache=cache)),
        named_modes=(*modes, _Named("ALL", (), (_USUAL_MODES,))),
    )


def _include_options(folders: Iterable[Path]) -> tuple[str, ...]:
    return tuple(option for folder in folders for option in ("-I", str(folder)))


def read_listing(file: Path) -> tuple[str, Tree]:
    """Return a package's name and its tree, from the file that `npu_op_package` wrote.

    A line is a word and its values, apart by tabs: `package NAME`, `root FOLDER`, `host FILE`,
    `host-option OPTION`, `base TARGET FOLDER`, `kernel TARGET OP FOLDER FILE UNITS`,
    `options TARGET OP UNITS OPTION...`; UNITS are apart by commas, `-` for all chips.

    Raises:
        UsageError: it cannot be read, or names no host source.
    """
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as err:
        raise UsageError(f"{file}: cannot be read: {err}", help="run cmake again") from err
    lines = [line.split("\t") for line in text.splitlines() if line]

    def values(word: str) -> Iterator[list[str]]:
        return (line[1:] for line in lines if line[0] == word)

    host = tuple(dict.fromkeys(Path(path) for (path,) in values("host")))
    (name,), (root,) = next(values("package")), next(values("root"))
    bases = dict(values("base"))
    if not host:
        raise UsageError(
            f"{file}: the package {name} has no host sources",
            help="npu_op_library(... TILING FILE...) and npu_op_package_add(... LIBRARY ...)",
        )
    kernels = tuple(
        _Named(op, _units(units), (str(Path(bases.get(target, root), folder, source)),))
        for target, op, folder, source, units in values("kernel")
    )
    options = tuple(
        _Named(op, _units(units), tuple(words)) for _, op, units, *words in values("options")
    )
    sources = tuple(dict.fromkeys(path for base in bases.values() for path in _sources(Path(base))))
    # Commands run in the root and name the sources from there.
    every = [Path(root), *host, *sources, *(Path(kernel.words[0]) for kernel in kernels)]
    common = Path(os.path.commonpath([os.path.normpath(path) for path in every]))
    host_options = tuple(dict.fromkeys(option for (option,) in values("host-option")))
    return name, Tree(common, host, sources, host_options, kernels, options)


def _units(text: str) -> tuple[str, ...]:
    return () if text == "-" else tuple(text.split(","))


def _keywords(words: Sequence[str]) -> dict[str, list[str]]:
    """Return the values behind each keyword of the CMake functions."""
    found: dict[str, list[str]] = {}
    values: list[str] = []
    for word in words:
        if word in _KEYWORDS:
            values = found.setdefault(word, [])
        else:
            values.append(word)
    return found


def _sources(folder: Path, *, own: frozenset[str] = frozenset()) -> tuple[Path, ...]:
    foreign = _FOREIGN_FOLDERS - own
    found = []
    for path in sorted(folder.rglob("*")):
        parts = path.relative_to(folder).parts
        # Copies that editors and notebooks keep, such as .ipynb_checkpoints, are no sources.
        is_hidden = any(part.startswith(".") for part in parts)
        if path.suffix in _SUFFIXES and not is_hidden and not foreign & set(parts[:-1]):
            found.append(path)
    return tuple(found)


def _tiling_folders(root: Path) -> frozenset[str]:
    """Return the folders of op_host/ that an operator's CMake names for chips known here.

    TILING_DIR names one for each chip of COMPUTE_UNIT: a chip may share another one's.
    """
    known = {chip.soc_config for chip in all_chips()}
    folders: set[str] = set()
    for text in _cmake_texts(root):
        values = dict(_SET.findall(text))
        for body in _MODULES.findall(text):
            given: dict[str, list[str]] = {}
            named: list[str] = []
            for word in body.split():
                if _KEYWORD.fullmatch(word):
                    named = given.setdefault(word, [])
                else:
                    named += [name.strip('"') for name in _values(word, values)]
            pairs = zip(given.get("COMPUTE_UNIT", ()), given.get("TILING_DIR", ()), strict=False)
            folders.update(folder for unit, folder in pairs if unit in known)
    return frozenset(folders)


def _values(word: str, variables: Mapping[str, str]) -> list[str]:
    variable = _VARIABLE.fullmatch(word)
    return variables.get(variable[1], "").split() if variable else [word]


def _cmake_texts(root: Path) -> Iterable[str]:
    kernels = sorted((root / _KERNEL).rglob("CMakeLists.txt"))
    for path in (root / "CMakeLists.txt", root / _HOST / "CMakeLists.txt", *kernels):
        if path.is_file():
            yield _COMMENT.sub("", _text(path))


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace")


def _kernels_in(text: str) -> list[str]:
    return [kernel.name for kernel in scan_kernels(text)]
