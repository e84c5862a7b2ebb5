"""The tutorials are true: their commands run, and print what the pages show."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

TUTORIALS = Path(__file__).parents[1] / "docs" / "tutorials"
PAGES = sorted(TUTORIALS.glob("*.md"))
BLOCK = re.compile(r"^```(\w+)(?: (\S+))?\n(.*?)^```$", re.DOTALL | re.MULTILINE)
NEEDS_TORCH = {"model_on_npu.md"}


def run_page(page: Path, folder: Path) -> int:
    """Carry out a page in a folder: write the files that blocks name, run commands; count these.

    A block of `console` has commands behind `$ `, each with the lines that it prints; `...` stands
    for anything. Every command exits with 0.
    """
    commands = 0
    for language, name, text in BLOCK.findall(page.read_text(encoding="utf-8")):
        if name:
            (folder / name).write_text(text, encoding="utf-8")
        if language != "console":
            continue
        for command, expected in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", text, re.MULTILINE):
            done = run(command, folder)
            assert done.returncode == 0, f"{page.name}: {command}\n{done.stdout}"
            assert matches(expected, done.stdout), (
                f"{page.name}: {command}\n-- shown:\n{expected}\n-- printed:\n{done.stdout}"
            )
            commands += 1
    return commands


def run(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        ["bash", "-o", "pipefail", "-c", command],
        cwd=folder,
        env={**os.environ, "PATH": path, "COLUMNS": "200"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )


def matches(expected: str, printed: str) -> bool:
    """Return whether an output is the one that a page shows, whatever its blanks."""
    words = [" ".join(line.split()) for line in expected.splitlines()]
    pattern = r"\s*".join(re.escape(line).replace(r"\.\.\.", ".*?") for line in words if line)
    return re.fullmatch(rf"\s*{pattern}\s*", " ".join(printed.split()), re.DOTALL) is not None


def test_a_page_that_shows_something_else_does_not_match() -> None:
    assert matches("a ... c\n...\nlast\n", "a b c\nmore\n  lines\nlast\n")
    assert matches("", "\n")
    assert not matches("", "something\n")
    assert not matches("0 wrong\n", "3 wrong\n")
    assert not matches("first\n", "first\nsecond\n")


def test_every_tutorial_has_commands() -> None:
    assert len(PAGES) >= 4
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        assert "```console" in text, page.name
        # A command that stands in an indented block is run by nobody.
        assert not re.search(r"^    (?:\$ |opkit )", text, re.MULTILINE), page.name


@pytest.mark.slow
@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, marks=pytest.mark.torch if page.name in NEEDS_TORCH else ())
        for page in PAGES
    ],
    ids=lambda page: page.stem,
)
def test_a_tutorial_prints_what_it_shows(page: Path, tmp_path: Path) -> None:
    if page.name in NEEDS_TORCH:
        pytest.importorskip("torch")
    assert run_page(page, tmp_path) > 0
