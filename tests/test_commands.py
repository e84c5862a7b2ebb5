"""Every command that README and documents show can be given as it stands; the quick ones run."""

from __future__ import annotations

import ast
import importlib.util
import re
import shlex
import subprocess
import sys
from pathlib import Path

import click
import pytest

from opkit.cli.app import COMMANDS, group
from opkit.errors import UsageError
from opkit.toolchain import OPKIT_COMMAND

ROOT = Path(__file__).parents[1]
DOCUMENTS = [
    *(ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "benchmarks" / "README.md"),
    *sorted((ROOT / "docs").glob("*.md")),
]
# What stands for the reader's own names.
PLACEHOLDERS = {"DIR": "samples", "PROJECT": "gelu_custom", "CHIP": "Ascend910B2", "NAME": "Exp"}
FILES = (
    *("gelu_custom.json", "op.json", "before.json", "after.json", "train.py", "add", "add.asc"),
    *("kernels.asc", "op_host/add.cpp", "my_operator/x", "gelu_custom/x", "samples/x"),
)
QUICK = ("targets", "isa", "explain", "doctor", "--help", "cc --env", "cc --cmake", "compat --scan")


def shown_lines(first: str) -> list[str]:
    """Return the indented lines of all documents that start with a word."""
    return _matches(rf"^ {{4}}(?:\$ )?({first} .*)$")


def shown_commands(first: str) -> list[str]:
    """Return what documents show that starts with a word: indented lines and spans of code."""
    return list(dict.fromkeys((*shown_lines(first), *_matches(rf"`({first} [^`\n]+)`"))))


def _matches(pattern: str) -> list[str]:
    found = []
    for document in DOCUMENTS:
        text = document.read_text(encoding="utf-8")
        for line in re.findall(pattern, text, re.MULTILINE):
            # A comment, a second command, or what the line is for, in a column of its own.
            command = re.split(r"\s#|&&|\s>\s| {3,}", line)[0].strip()
            if not re.search(r"\[[A-Z-]|: ", command):
                found.append(command)
    return found


def words_of(command: str) -> list[str]:
    return [PLACEHOLDERS.get(word, word) for word in shlex.split(command)[1:]]


@pytest.mark.parametrize("shown", shown_commands("opkit"))
def test_a_shown_command_is_taken(
    shown: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in FILES:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    name, *arguments = words_of(shown)
    if name == "--help":
        return
    assert name in COMMANDS, shown
    command = group.get_command(click.Context(group), name)
    assert command is not None
    if "--help" in arguments:
        return
    try:
        command.make_context(name, arguments, parent=click.Context(group, info_name="opkit"))
    except (click.MissingParameter, click.BadOptionUsage, UsageError, click.exceptions.Exit):
        # A sentence may name a command, or an option of it, without the rest; a line may not.
        assert shown not in shown_lines("opkit"), shown


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "shown",
    [c for c in shown_commands("opkit") if c.removeprefix("opkit ").startswith(QUICK)],
)
def test_a_quick_shown_command_runs_from_the_checkout(shown: str) -> None:
    if "samples" in words_of(shown):
        pytest.skip("of the reader's own files")
    done = subprocess.run(
        [*OPKIT_COMMAND, *words_of(shown)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    # The doctor of a machine that lacks something says so with 3.
    assert done.returncode in ((0, 3) if "doctor" in shown else (0,)), done.stderr


@pytest.mark.parametrize("shown", shown_commands("python"))
def test_a_shown_script_is_there_and_finds_what_it_imports(
    shown: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (script,) = [ROOT / word for word in shlex.split(shown) if word.endswith(".py")] or [None]
    if script is None:
        pytest.skip("no script of ours")
    assert script.is_file(), shown
    monkeypatch.syspath_prepend(str(script.parent))
    tree = ast.parse(script.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            names = [node.module or ""]
        for name in names:
            top = name.partition(".")[0]
            if top != "torch":
                assert importlib.util.find_spec(top) is not None, f"{shown}: {name}"


@pytest.mark.parametrize("script", ["wrong_outputs.py", "verdict.py --help"])
def test_a_quick_benchmark_runs_from_the_checkout(script: str) -> None:
    name, *arguments = script.split()
    command = [sys.executable, f"benchmarks/{name}", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_shown_script_of_the_shell_is_there() -> None:
    text = "\n".join(document.read_text(encoding="utf-8") for document in DOCUMENTS)
    scripts = set(re.findall(r"`((?:\.ci|benchmarks)/[\w./]+)`", text))
    assert {".ci/run", "benchmarks/first_command.sh"} <= scripts
    missing = [name for name in scripts if not (ROOT / name).exists()]
    assert not missing
