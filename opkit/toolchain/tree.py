"""Operator projects without a pyproject.toml: msopgen's layout, and public projects like it.

Their operators are what op_host/ registers; their CMake files say which kernel file is whose.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from opkit.errors import UsageError
from opkit.schema import snake_case

__all__ = ["KernelFile", "find_kernel_file", "host_sources", "is_tree", "kernel_options"]

_HOST, _KERNEL = "op_host", "op_kernel"
_SUFFIXES = frozenset((".cpp", ".cc", ".cxx"))
# Not the operators' own: unit tests, and sources for chips with another instruction set.
_FOREIGN_FOLDERS = frozenset(("tests", "test", "ut", "arch35", "op_api", "build", "build_out"))
_ENTRY = re.compile(
    r"__global__(?:\s+(?:__aicore__|__vector__|__cube__|__mix__\s*\([^)]*\)|\[\w+\]))*\s+void\s+(\w+)\s*\("
)
_KERNEL_SOURCES = re.compile(r"npu_op_kernel_sources\s*\(([^)]*)\)")
_COMPILE_OPTIONS = re.compile(
    r"(?:add_ops_compile_options|npu_op_kernel_options)\s*\(([^)]*)\)", re.DOTALL
)
_COMMENT = re.compile(r"#[^\n]*")


@dataclass(frozen=True)
class KernelFile:
    """Where an operator's kernel lies."""

    source: Path
    entry: str
    """The function that is launched."""


def is_tree(folder: Path) -> bool:
    """Return whether a folder holds operators in msopgen's layout."""
    return bool(host_sources(folder)) and (folder / _KERNEL).is_dir()


def host_sources(root: Path) -> tuple[Path, ...]:
    """Return the sources of op_host/ by path."""
    return tuple(_sources(root / _HOST))


def find_kernel_file(root: Path, op: str, op_file: str | None) -> KernelFile:
    """Return an operator's kernel.

    CMake's `npu_op_kernel_sources(OP_TYPE ... KERNEL_FILE ...)` counts first, then the file that
    the OpDef names, then a file named like the operator, then one whose entry is.

    Raises:
        UsageError: there is none.
    """
    name = snake_case(op)
    named = _file_from_cmake(root, op)
    candidates = [named] if named else []
    sources = list(_sources(root / _KERNEL))
    for stem in (op_file, name):
        candidates += [path for path in sources if path.stem == stem]
    candidates += sources
    for path in candidates:
        entries = _ENTRY.findall(_without_comments(path))
        if name in entries:
            return KernelFile(path, name)
        is_its_own = path == named or path.stem in (op_file, name)
        if is_its_own and len(set(entries)) == 1:
            return KernelFile(path, entries[0])
    raise UsageError(
        f"{root}: {op} has no kernel: no function {name} in {_KERNEL}/",
        help=f"name the file {name}.cpp, or its function {name}",
    )


def kernel_options(root: Path, op: str) -> tuple[str, ...]:
    """Return the macros and include folders that CMake gives an operator's kernel."""
    options: list[str] = []
    for text in _cmake_texts(root):
        for body in _COMPILE_OPTIONS.findall(text):
            words = shlex.split(body)
            if "OPTIONS" not in words or not {op, "ALL"} & set(words):
                continue
            given = words[words.index("OPTIONS") + 1 :]
            options += [word for word in given if word.startswith(("-D", "-U", "-std="))]
    return tuple(dict.fromkeys(options))


def _sources(folder: Path) -> Iterable[Path]:
    for path in sorted(folder.rglob("*")):
        inside = path.relative_to(folder).parts[:-1]
        if path.suffix in _SUFFIXES and not _FOREIGN_FOLDERS & set(inside):
            yield path


def _file_from_cmake(root: Path, op: str) -> Path | None:
    for text in _cmake_texts(root):
        for body in _KERNEL_SOURCES.findall(text):
            words = body.split()
            given = {
                key: words[index + 1]
                for index, key in enumerate(words[:-1])
                if key in ("OP_TYPE", "KERNEL_DIR", "KERNEL_FILE")
            }
            if given.get("OP_TYPE") != op or "KERNEL_FILE" not in given:
                continue
            path: Path = root / _KERNEL / given.get("KERNEL_DIR", "") / given["KERNEL_FILE"]
            if path.is_file():
                return path
    return None


def _cmake_texts(root: Path) -> Iterable[str]:
    for path in (root / "CMakeLists.txt", *sorted((root / _KERNEL).rglob("CMakeLists.txt"))):
        if path.is_file():
            yield _COMMENT.sub("", path.read_text(encoding="utf-8", errors="replace"))


def _without_comments(path: Path) -> str:
    text = path.read_text(encoding="utf-8", errors="replace")
    return re.sub(r"/\*.*?\*/|//[^\n]*", "", text, flags=re.DOTALL)
