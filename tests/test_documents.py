"""Documents are true: each code block runs and prints what it shows, or why not is said here."""

from __future__ import annotations

import ast
import contextlib
import io
import json
import re
from collections import Counter
from pathlib import Path

import click
import numpy as np
import pytest
import yaml

from opkit.cli.app import COMMANDS, group

from .documents import ROOT, Block, blocks_of, compared, matches, pages, run_page

ELSEWHERE = {
    "docs/commands.md": "written from --help by docs/generate.py; tests/test_docs.py",
    "docs/cookbook/": "of the corpus, by docs/generate.py; tests/examples/test_corpus.py",
    "docs/operators.md": "prototypes and formulas: tests/test_docs.py",
    "docs/python.md": "a doctest: tests/test_docs.py",
    "docs/articles.md": "written by benchmarks/articles.py",
    "docs/index.md": "lists of pages: tests/test_site.py",
    "docs/cookbook/index.md": "its commands are those of docs/tutorials; tests/test_site.py",
}
"""Pages whose blocks another test runs or compares."""

FIGURE = "a drawing or a list in words, no code"
INSTALLS = "it installs packages from a registry"
FOREVER = "a service that goes on for ever: tests/cli/test_serve.py, tests/service"
INTERACTIVE = "a session at a terminal: tests/debugging"
MODEL = "it needs a model or a data set of the reader's"
EXCERPT = "part of a program or of a build's files, not a whole one"
FOREIGN = "it needs an operator library or a program of the reader's: tests/compat, tests/cli"
LONG = "it takes minutes: tests/tuning, tests/cli/test_tune.py"
FAULTY = "of a kernel with a fault in it: tests/sanitizer, tests/cli/test_check.py"

NOT_RUN: dict[tuple[str, str], str] = {
    ("README.md", "pip install"): INSTALLS,
    ("README.md", "gelu_custom-float16-17-normal: fault"): FAULTY,
    ("README.md", "$ pip install"): "tests/cli/test_demo.py installs a project by pip",
    ("README.md", ">>> model"): "tests/torch_npu",
    ("CONTRIBUTING.md", "python3 -m venv"): INSTALLS,
    ("CONTRIBUTING.md", "   //"): EXCERPT,
    ("docs/architecture.md", ""): FIGURE,
    ("docs/cases.md", "generated:"): "a file with all fields; tests/testing/test_case_files.py",
    ("docs/check.md", "opkit check"): FOREIGN,
    ("docs/check.md", "DataCopy on MTE2"): FAULTY,
    ("docs/check.md", "in the losing order"): FAULTY,
    ("docs/check.md", "RACE-WAR"): "a file of suppressions; tests/sanitizer",
    ("docs/check.md", "from opkit.sanitizer"): "tests/sanitizer",
    ("docs/compiler.md", "def norm"): EXCERPT,
    ("docs/compiler.md", "opkit compile"): "tests/cli/test_compile.py",
    ("docs/debug.md", ""): INTERACTIVE,
    ("docs/graph.md", ""): MODEL,
    ("docs/mcp.md", "opkit mcp operators"): "goes on for ever; tests/cli/test_mcp.py",
    ("docs/mcp.md", "gen      prototype="): "calls of an agent; tests/cli/test_mcp.py",
    ("docs/judge.md", ""): "tests/judging, tests/cli: a candidate in a sandbox",
    ("docs/log.md", "opkit log"): FOREVER,
    ("docs/log.md", "[ERROR]"): FIGURE,
    ("docs/optimisers.md", ""): "tests/optimisers",
    ("docs/precision.md", "8 * sum"): FIGURE,
    ("docs/precision.md", "silu_custom_grad"): "of an operator that cancels; tests/testing",
    ("docs/precision.md", "[tool.opkit"): "tests/testing/test_settings.py",
    ("docs/precision.md", "from opkit.torch_bridge"): MODEL,
    ("docs/profile.md", "opkit profile"): "tests/cli/test_profile.py",
    ("docs/programs.md", ""): FOREIGN,
    ("docs/scale.md", ""): "several machines",
    ("docs/service.md", ""): FOREVER,
    ("docs/torch_npu.md", ""): "tests/torch_npu",
    ("docs/tuning.md", ""): LONG,
    ("docs/vendor_commands.md", ""): INSTALLS,
}
"""Of pages, and of what a block begins with there; the longest beginning counts."""

# What python blocks take from the reader; those of a page run one after the other.
PYTHON = {
    "docs/compiler.md": {
        "array": np.ones((64, 64), np.float32),
        "x": np.ones((5, 4096), np.float16),
        "weight": np.ones(4096, np.float16),
    },
    "docs/pypto.md": {
        name: np.ones(shape, np.float32)
        for name, shape in (("x", (8, 16)), ("weight", (16, 32)), ("bias", (1, 32)))
    },
}
NEEDS_TORCH = {"docs/tutorials/model_on_npu.md"}
BLOCKS = [block for page in pages() for block in blocks_of(page)]
RUN = [page for page in pages() if any(block.commands for block in blocks_of(page))]


def reason(block: Block) -> str:
    """Return who else holds a block, or why it is not run; empty where it is run here."""
    if block.is_run or (block.page in PYTHON and block.language == "python"):
        return ""
    known = [where for page, where in ELSEWHERE.items() if block.page.startswith(page)]
    found = [
        (len(begin), why)
        for (page, begin), why in NOT_RUN.items()
        if page == block.page and block.text.startswith(begin)
    ]
    return max(found)[1] if found else known[-1] if known else "?"


def test_every_block_is_run_or_says_why_not() -> None:
    # Most pages' blocks were run by nobody, and nothing said so.
    where = {f"{block.page}:{block.line}": reason(block) for block in BLOCKS}
    run = sum(why == "" for why in where.values())
    known = sum(any(why == each for each in ELSEWHERE.values()) for why in where.values())
    print(f"{len(BLOCKS)} blocks: {run} run here, {known} by another test, the rest says why not")
    print(Counter(where.values()))
    assert [place for place, why in where.items() if why == "?"] == []
    assert run >= 39
    assert known >= 80


def test_every_reason_is_one_of_a_block() -> None:
    unused = [
        (page, begin)
        for page, begin in NOT_RUN
        if not any(b.page == page and b.text.startswith(begin) and not b.is_run for b in BLOCKS)
    ]
    assert unused == []


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_and_options_of_a_page_exist(page: Path) -> None:
    context = click.Context(group, info_name="opkit")
    text = "".join(block.text for block in blocks_of(page))
    typed = re.findall(r"^(?:\$ )?opkit ([a-z]+(?: .*)?)$", text, re.MULTILINE)
    quoted = re.findall(r"`opkit ([a-z]+(?: [^`\n]*)?)`", page.read_text(encoding="utf-8"))
    for line in (*typed, *quoted):
        name, _, rest = line.partition(" ")
        assert name in COMMANDS, line
        command = group.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            # A folder alone is for `run`.
            command = command.commands.get(rest.split(" ")[0], command.commands["run"])
        if name == "cc":
            continue  # it takes the compiler's options
        known = {flag for each in command.params for flag in (*each.opts, *each.secondary_opts)}
        own = re.split(r" -- | {2,}|[|&]| #|\[OPTIONS\]", f" {rest} ")[0]
        for option in re.findall(r"(?<= )--?[a-z][a-z-]*", f" {own}"):
            assert option in {*known, "--help", "--version"}, f"opkit {line}: {option}"


def test_blocks_in_a_language_can_be_read() -> None:
    for block in BLOCKS:
        begins = block.text.lstrip()
        try:
            if block.language == "json":
                json.loads(block.text)
            elif block.language == "python" or begins.startswith(("import ", "from opkit")):
                ast.parse(block.text)
            elif begins.startswith("generated:"):
                yaml.safe_load(block.text)
        except Exception as error:
            raise AssertionError(f"{block.page}:{block.line}: {error}") from error


def test_a_page_that_shows_something_else_does_not_match() -> None:
    assert matches("a ... c\n...\nlast\n", "a b c\nmore\n  lines\nlast\n")
    assert matches("", "\n")
    assert not matches("", "something\n")
    assert not matches("0 wrong\n", "3 wrong\n")
    assert not matches("first\n", "first\nsecond\n")


def test_files_that_are_made_side_by_side_come_in_any_order() -> None:
    shown = "compile  a.o (1.0 s)\ncompile  b.o (2.0 s)\n"
    printed = "compile  b.o (0.1 s)\n cached  a.o (0.0 s)\nlink  c.so (0.0 s)\n"
    assert compared("opkit build x", shown, printed)
    assert not compared("opkit build x", f"{shown}compile  d.o (1.0 s)\n", printed)
    assert not compared("opkit test x", shown, printed)


def test_a_command_in_an_indented_block_of_a_tutorial_is_refused() -> None:
    # It would be run by nobody.
    tutorials = [block for block in BLOCKS if block.page.startswith("docs/tutorials")]
    assert len({block.page for block in tutorials}) >= 4
    assert [block for block in tutorials if not block.is_run] == []


@pytest.mark.slow
@pytest.mark.parametrize(
    "page",
    [
        pytest.param(
            page,
            marks=pytest.mark.torch if str(page.relative_to(ROOT)) in NEEDS_TORCH else (),
            id=page.stem,
        )
        for page in RUN
    ],
)
def test_a_page_prints_what_it_shows(page: Path, tmp_path: Path) -> None:
    # The README's times were of an earlier model, and its build had a file less.
    if str(page.relative_to(ROOT)) in NEEDS_TORCH:
        pytest.importorskip("torch")
    assert run_page(page, tmp_path) > 0


@pytest.mark.slow
@pytest.mark.parametrize("page", sorted(PYTHON))
def test_the_python_of_a_page_runs(page: str, tmp_path: Path) -> None:
    names: dict[str, object] = {"__name__": "page", **PYTHON[page]}
    for block in blocks_of(ROOT / page):
        if block.language == "python":
            file = tmp_path / f"line_{block.line}.py"
            file.write_text(block.text, encoding="utf-8")
            with contextlib.redirect_stdout(io.StringIO()):
                exec(compile(block.text, str(file), "exec"), names)
