"""Pages of the site that are read out of the sources: the Python API, and the C++ headers.

They are made when the site is built and are no files of the repository: the docstrings and head
comments are what a reader of the repository has. Nothing is imported, so that opkit need not be
built.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

__all__ = ["api_page", "headers_page"]

PACKAGES = (
    "schema", "scaffold", "toolchain", "runtime", "testing", "sanitizer", "profiling", "debugging",
    "tuning", "executor", "compiler", "pypto", "triton", "graph", "torch_bridge", "optimisers",
    "service",
)  # fmt: skip
"""Packages whose names people import, in the order of the work."""
MODULES = ("chips", "dtypes", "errors", "log", "selection")


def api_page(root: Path) -> str:
    """Return every public name with its parameters and the first sentence of its docstring."""
    lines = [
        "# Python API",
        "",
        "Every public name of every package, from its docstring; [python.md](python.md) shows how",
        "they are used together. Import the package: `from opkit.testing import compare`.",
    ]
    for name in (*MODULES, *PACKAGES):
        folder = root / "opkit" / name
        files = sorted(folder.rglob("*.py")) if folder.is_dir() else [folder.with_suffix(".py")]
        head = folder / "__init__.py" if folder.is_dir() else files[0]
        public = _exported(_parsed(head))
        found = {node.name: node for file in files for node in _definitions(_parsed(file))}
        rows = [_row(found[word]) for word in sorted(public, key=str.lower) if word in found]
        if rows:
            about = _first(ast.get_docstring(_parsed(head)))
            lines += ["", f"## opkit.{name}", "", about, "", "| name | |", "|---|---|", *rows]
    return "\n".join(lines) + "\n"


def headers_page(root: Path) -> str:
    """Return every header below include/ with the first sentence of its head comment."""
    include = root / "opkit" / "emulator" / "include"
    lines = [
        "# C++ headers",
        "",
        "What kernels, host code and programs may include, from each header's first comment.",
    ]
    by_folder: dict[str, list[str]] = {}
    for file in sorted(include.rglob("*.h")):
        name = file.relative_to(include)
        comment = re.search(r"^//+ ?(.*(?:\n//+ ?\S.*)*)", file.read_text("utf-8"), re.MULTILINE)
        about = _first(re.sub(r"\n//+ ?", "\n", comment[1])) if comment else ""
        by_folder.setdefault(str(name.parent), []).append(f"| `{name}` | {_cell(about)} |")
    for folder, rows in by_folder.items():
        heading = "include" if folder == "." else folder
        lines += ["", f"## {heading}", "", "| header | |", "|---|---|", *rows]
    return "\n".join(lines) + "\n"


def _parsed(file: Path) -> ast.Module:
    return ast.parse(file.read_text(encoding="utf-8"))


def _exported(tree: ast.Module) -> list[str]:
    for node in tree.body:
        if (
            isinstance(node, ast.Assign)
            and isinstance(node.value, ast.List)
            and any(isinstance(name, ast.Name) and name.id == "__all__" for name in node.targets)
        ):
            words = node.value.elts
            return [str(word.value) for word in words if isinstance(word, ast.Constant)]
    return []


def _definitions(tree: ast.Module) -> Iterator[ast.FunctionDef | ast.ClassDef]:
    return (node for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef))


def _row(node: ast.FunctionDef | ast.ClassDef) -> str:
    text = node.name if isinstance(node, ast.ClassDef) else f"{node.name}({_parameters(node.args)})"
    return f"| `{text}` | {_cell(_first(ast.get_docstring(node)))} |"


def _parameters(arguments: ast.arguments) -> str:
    words = [argument.arg for argument in (*arguments.posonlyargs, *arguments.args)]
    if arguments.vararg:
        words.append(f"*{arguments.vararg.arg}")
    elif arguments.kwonlyargs:
        words.append("*")
    words += [argument.arg for argument in arguments.kwonlyargs]
    if arguments.kwarg:
        words.append(f"**{arguments.kwarg.arg}")
    return ", ".join(words)


def _first(text: str | None) -> str:
    """Return a comment's first paragraph in one line."""
    return " ".join((text or "").split("\n\n")[0].split())


def _cell(text: str) -> str:
    plain = text.split("`")
    plain[::2] = [re.sub(r"([|<\[*_$])", r"\\\1", part) for part in plain[::2]]
    plain[1::2] = [part.replace("|", "\\|") for part in plain[1::2]]
    return "`".join(plain)
