"""Code blocks of documents: which there are, and one way to run them and compare what they print.

A fenced block's words behind its language say what becomes of it:

    ```json gelu.json          a file, written into the page's folder
    ```console                 commands behind `$ `, each with the lines that it prints
    ```cpp in:gelu/a.cpp       lines that stand so, in this order, in a file that a command made

In what is shown `...` stands for anything. Indented blocks are not run.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

__all__ = ["ROOT", "Block", "blocks_of", "compared", "matches", "pages", "run_page"]

ROOT = Path(__file__).parents[1]
_BUILT_AGAIN = re.compile(r"built [\w.-]+, \d+ files")
_SECONDS = re.compile(r" \(\d+\.\d s\)| in \d+\.\d s")
_ABI = re.compile(r"cpython-\d+-[\w-]+\.so")
_COUNTS = re.compile(r"(\d+) compiled, (\d+) cached, (\d+) fresh")
_FENCE = re.compile(r"```(\{?\w*\}?)(?: (.*))?$")
# Files are made side by side: the order in which they end is not known.
_UNORDERED = ("opkit gen", "opkit build")


@dataclass(frozen=True)
class Block:
    """One code block of a page."""

    page: str
    """Its path below the repository."""
    line: int
    language: str
    """`` of an indented one."""
    name: str
    """The words behind the language."""
    text: str

    @property
    def is_run(self) -> bool:
        """Whether `run_page` does something with it."""
        return self.language == "console" or bool(self.name and not self.language.startswith("{"))

    @property
    def commands(self) -> list[tuple[str, str]]:
        """The commands of a console, each with what it prints."""
        if self.language != "console":
            return []
        return re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", self.text, re.MULTILINE)


def pages() -> list[Path]:
    """Return the English pages; the Chinese ones have the same blocks."""
    own = [ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
    docs = (page for page in (ROOT / "docs").rglob("*.md") if "zh" not in page.parts)
    return [*own, *sorted(docs)]


def blocks_of(page: Path) -> Iterator[Block]:
    """Yield the code blocks of a page, in their order."""
    path = str(page.relative_to(ROOT)) if page.is_relative_to(ROOT) else page.name
    lines = page.read_text(encoding="utf-8").splitlines()
    at = 0
    while at < len(lines):
        begin, fence = at, _FENCE.match(lines[at])
        at += 1
        if fence:
            while lines[at] != "```":
                at += 1
            text = "".join(f"{line}\n" for line in lines[begin + 1 : at])
            yield Block(path, begin + 1, fence[1], fence[2] or "", text)
            at += 1
        elif lines[begin].startswith("    ") and (begin == 0 or not lines[begin - 1]):
            while at < len(lines) and (lines[at].startswith("    ") or not lines[at]):
                at += 1
            text = "".join(f"{line[4:]}\n" for line in lines[begin:at]).rstrip("\n") + "\n"
            yield Block(path, begin + 1, "", "", text)


def run_page(page: Path, folder: Path) -> int:
    """Carry out a page in a folder, and compare what is printed with what it shows; every command
    ends with 0. Return the number of commands."""
    commands = 0
    for block in blocks_of(page):
        where = f"{block.page}:{block.line}"
        if block.name.startswith("in:"):
            found = (folder / block.name[3:]).read_text(encoding="utf-8")
            assert matches(f"...\n{block.text}...\n", found), where
        elif block.is_run and block.language != "console":
            (folder / block.name).write_text(block.text, encoding="utf-8")
        for command, expected in block.commands:
            done = _run(command, folder)
            assert done.returncode == 0, f"{where}: {command}\n{done.stdout}"
            is_right = compared(command, expected, done.stdout)
            shown = f"-- shown:\n{expected}\n-- printed:\n{done.stdout}"
            assert is_right, f"{where}: {command}\n{shown}"
            commands += 1
    return commands


def compared(command: str, expected: str, printed: str) -> bool:
    """Return whether a command has printed what a page shows."""
    if not command.startswith(_UNORDERED) or expected.lstrip().startswith("..."):
        return matches(expected, printed)
    wanted = [line for line in _plain(expected) if line != "..."]
    return set(wanted) <= set(_plain(printed))


def matches(expected: str, printed: str) -> bool:
    """Return whether an output is the one that a page shows, whatever its blanks."""
    lines = (re.escape(line).replace(r"\ \.\.\.", r"\.\.\.") for line in _plain(expected))
    pattern = r"\s*".join(line.replace(r"\.\.\.", ".*?") for line in lines)
    return re.fullmatch(rf"\s*{pattern}\s*", " ".join(_plain(printed)), re.DOTALL) is not None


def _plain(text: str) -> list[str]:
    """Return lines without what this machine adds: times of its own, Python's name, and what it has
    compiled before."""
    plain = _ABI.sub("cpython.so", _SECONDS.sub("", text))
    plain = _COUNTS.sub(lambda found: f"{sum(map(int, found.groups()))} files", plain)
    lines = [" ".join(line.split()) for line in plain.splitlines()]
    # A command builds again what was written a moment before it was built.
    shown = (line for line in lines if line and not _BUILT_AGAIN.fullmatch(line))
    return [re.sub(r"^cached ", "compile ", line) for line in shown]


def _run(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        ["bash", "-o", "pipefail", "-c", command],
        cwd=folder,
        env={**os.environ, "PATH": path, "COLUMNS": "200"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=600,
    )
