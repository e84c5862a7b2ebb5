"""What the README says that commands print is what they print, times of the model included."""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from opkit.toolchain import OPKIT_COMMAND

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")

# Commands that a test runs elsewhere, or that none can, each with where or why.
NOT_RUN = {
    "pip install --no-build-isolation": "tests/cli/test_demo.py installs a project by pip",
    "python": "the same; docs/python.md's sessions are run by tests/test_docs.py",
    "pip install '.[service]'": "it fetches from a registry",
    "opkit serve": "it goes on for ever: tests/cli/test_serve.py",
    "opkit dash": "it goes on for ever: tests/service/test_dash.py",
}
_SECONDS = re.compile(r" \(\d+\.\d s\)| in \d+\.\d s")
_ABI = re.compile(r"cpython-\d+-[\w-]+\.so")
_COUNTS = re.compile(r"(\d+) compiled, (\d+) cached, (\d+) fresh")


@dataclass(frozen=True)
class Block:
    """A command of a document, and the lines that it is said to print; `...` stands for others."""

    command: str
    printed: tuple[str, ...]


def blocks_of(text: str) -> list[Block]:
    found: list[Block] = []
    lines = text.splitlines()
    for at, line in enumerate(lines):
        if not line.startswith("    $ "):
            continue
        end = at + 1
        while end < len(lines) and (lines[end].startswith("    ") or not lines[end]):
            end += 1
        own = [each[4:].rstrip() for each in lines[at + 1 : end]]
        shown = next((i for i, each in enumerate(own) if each.startswith(("$ ", ">>> "))), len(own))
        found.append(Block(line[6:], tuple(each for each in own[:shown] if each)))
    return found


def is_run(block: Block) -> bool:
    return not any(block.command.startswith(prefix) for prefix in NOT_RUN)


def as_compared(text: str) -> list[str]:
    """Return printed lines without what this machine adds: times of its own, Python's name, and
    what it has compiled before."""
    plain = _ABI.sub("cpython.so", _SECONDS.sub("", text))
    plain = _COUNTS.sub(lambda found: f"{sum(map(int, found.groups()))} files", plain)
    lines = [line.strip() for line in plain.splitlines()]
    return [re.sub(r"^cached ", "compile ", line) for line in lines if line]


def missing_from(block: Block, printed: str, *, in_order: bool) -> list[str]:
    """Return the lines of a block that a command has not printed."""
    wanted = [line for line in as_compared("\n".join(block.printed)) if line != "..."]
    got = as_compared(printed)
    if not in_order:
        return [line for line in wanted if line not in got]
    rest = iter(got)
    return [line for line in wanted if line not in rest]


def test_each_command_of_the_readme_is_run_or_says_why_not() -> None:
    blocks = blocks_of(README)
    run = [block.command for block in blocks if is_run(block)]
    print(f"{len(run)} of {len(blocks)} commands of the README are run and compared")
    assert [command.split()[1] for command in run] == ["gen", "build", "test", "profile"]
    unused = [p for p in NOT_RUN if not any(b.command.startswith(p) for b in blocks)]
    assert not unused


def test_a_line_that_is_not_printed_is_found() -> None:
    block = Block("opkit x", ("a  1.0 us", "...", "c"))
    assert not missing_from(block, "a  1.0 us\nb\nc\n", in_order=True)
    assert missing_from(block, "a  1.1 us\nc\n", in_order=True) == ["a  1.0 us", "c"]
    assert missing_from(block, "c\na  1.0 us\n", in_order=False) == []


@pytest.mark.slow
def test_the_commands_of_the_readme_print_what_it_says(tmp_path: Path) -> None:
    # Its times were of an earlier model, and its build had a file less.
    prototype = re.search(r"\n\n((?: {4}.*\n)+)\n\*\*gen\*\*", README)
    assert prototype is not None
    (tmp_path / "gelu_custom.json").write_text(prototype[1])
    for block in filter(is_run, blocks_of(README)):
        words = block.command.split()
        done = subprocess.run(
            [*OPKIT_COMMAND, *words[1:]],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )
        assert done.returncode == 0, done.stderr
        # Files are compiled side by side: the order in which they end is not known.
        printed = done.stdout + done.stderr
        in_order = words[1] not in ("gen", "build")
        assert missing_from(block, printed, in_order=in_order) == [], block.command
        if words[1] == "gen":
            kernel = (tmp_path / "gelu_custom" / "op_kernel" / "gelu_custom.cpp").read_text()
            compute = re.search(r"This is its Compute:\n\n((?: {4}.*\n)+)", README)
            assert compute is not None
            assert (
                missing_from(Block("", tuple(compute[1].splitlines())), kernel, in_order=True) == []
            )
