"""What the console prints, and the exit code of every outcome."""

from __future__ import annotations

import json
import math
import os
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import click
import numpy as np
import pytest

from opkit.cli.console import Console, common_options, run_guarded, to_json, wants_colour
from opkit.errors import (
    BuildError,
    Diagnostic,
    KernelFault,
    OpkitError,
    PrecisionError,
    SetupError,
    SpecError,
    UsageError,
)


def command_that(action: Callable[[Console], object]) -> click.Command:
    @click.command("try")
    @common_options
    def command(*, console: Console) -> object:
        return action(console)

    return command


def command_that_raises(error: BaseException) -> click.Command:
    def action(console: Console) -> None:
        raise error

    return command_that(action)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (UsageError("no"), 2),
        (SpecError("no"), 2),
        (BuildError("no"), 1),
        (KernelFault("no", category="OutOfBounds"), 1),
        (PrecisionError("no"), 1),
        (SetupError("no"), 3),
        (OpkitError("no"), 70),
        (ZeroDivisionError("no"), 70),
        (KeyboardInterrupt(), 130),
        (click.UsageError("no"), 2),
        (click.Abort(), 130),
    ],
)
def test_every_kind_of_error_has_its_exit_code(error: BaseException, code: int) -> None:
    assert run_guarded(command_that_raises(error), []) == code


def test_a_command_that_returns_normally_exits_0() -> None:
    assert run_guarded(command_that(lambda console: None), []) == 0


def test_an_error_goes_to_stderr_with_its_next_step(capsys: pytest.CaptureFixture[str]) -> None:
    run_guarded(command_that_raises(UsageError("no chip", help="see opkit targets")), [])
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err == "error: no chip\n  help: see opkit targets\n"


def test_a_user_error_shows_no_traceback_even_when_verbose(
    capsys: pytest.CaptureFixture[str],
) -> None:
    run_guarded(command_that_raises(UsageError("no chip")), ["-v"])
    assert "Traceback" not in capsys.readouterr().err


def test_our_bug_says_so_and_saves_the_traceback(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    run_guarded(command_that_raises(ZeroDivisionError("oops")), [])
    printed = capsys.readouterr().err
    assert "ZeroDivisionError: oops" in printed
    assert "bug in opkit" in printed
    assert "Traceback" not in printed
    (saved,) = tmp_path.iterdir()
    assert "Traceback" in saved.read_text()
    assert str(saved) in printed


def test_our_bug_shows_the_traceback_under_v(capsys: pytest.CaptureFixture[str]) -> None:
    run_guarded(command_that_raises(ZeroDivisionError("oops")), ["-v"])
    assert "Traceback" in capsys.readouterr().err


def test_json_mode_prints_an_error_as_one_document_on_stdout(
    capsys: pytest.CaptureFixture[str],
) -> None:
    error = SpecError("bad", file=Path("op.json"), pointer="/0/op", line=3, help="do this")
    assert run_guarded(command_that_raises(error), ["--json"]) == 2
    printed = capsys.readouterr()
    assert printed.err == ""
    assert json.loads(printed.out) == {
        "error": {
            "kind": "SpecError",
            "message": "bad",
            "help": "do this",
            "file": "op.json",
            "pointer": "/0/op",
            "line": 3,
            "exit_code": 2,
        }
    }


def test_json_mode_also_covers_a_wrong_option(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_guarded(command_that(lambda console: None), ["--json", "--nope"]) == 2
    assert json.loads(capsys.readouterr().out)["error"]["kind"] == "UsageError"


def test_an_option_after_two_dashes_is_not_ours(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_guarded(command_that(lambda console: None), ["--", "--json"]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("error: ")


def test_a_build_error_shows_the_source_line_and_a_caret(
    capsys: pytest.CaptureFixture[str],
) -> None:
    diagnostic = Diagnostic(Path("op_kernel/x.cpp"), 42, 9, "error", "no Foo", "        Foo();")
    run_guarded(command_that_raises(BuildError("1 error", diagnostics=(diagnostic,))), [])
    assert capsys.readouterr().err.splitlines() == [
        "error: no Foo",
        "  --> op_kernel/x.cpp:42:9",
        "   42 |         Foo();",
        "      |         ^",
        "error: 1 error",
    ]


def test_a_diagnostic_without_a_column_has_no_caret(capsys: pytest.CaptureFixture[str]) -> None:
    Console().diagnostics([Diagnostic(Path("x.cpp"), 4, 0, "error", "no", "Foo();")])
    assert capsys.readouterr().err == "error: no\n  --> x.cpp:4\n    4 | Foo();\n"


def test_a_diagnostic_without_a_line_shows_the_file_alone(
    capsys: pytest.CaptureFixture[str],
) -> None:
    # It used to end in ":0".
    Console().diagnostics([Diagnostic(Path("project"), 0, 0, "error", "no such symbol")])
    assert capsys.readouterr().err == "error: no such symbol\n  --> project\n"


def test_a_tab_before_the_column_keeps_its_width(capsys: pytest.CaptureFixture[str]) -> None:
    Console().diagnostics([Diagnostic(Path("x.cpp"), 1, 2, "error", "no", "\tFoo();")])
    assert capsys.readouterr().err.splitlines()[-1] == "      | \t^"


def test_status_lines_align_their_verbs(capsys: pytest.CaptureFixture[str]) -> None:
    console = Console()
    console.status("create", "README.md")
    console.status("identical", "setup.py")
    assert capsys.readouterr().err == "    create  README.md\n identical  setup.py\n"


def test_quiet_keeps_warnings_and_results(capsys: pytest.CaptureFixture[str]) -> None:
    console = Console(quiet=True)
    console.status("create", "README.md")
    console.detail("why")
    console.warn("disk is full")
    console.result("42")
    printed = capsys.readouterr()
    assert printed.err == "warning: disk is full\n"
    assert printed.out == "42\n"


def test_command_lines_show_under_v_and_are_quoted(capsys: pytest.CaptureFixture[str]) -> None:
    Console().command_line(["g++", "a b.cpp"])
    assert capsys.readouterr().err == ""
    Console(verbose=1).command_line(["g++", "a b.cpp"])
    assert capsys.readouterr().err == "$ g++ 'a b.cpp'\n"


def test_results_and_tables_leave_stdout_to_json(capsys: pytest.CaptureFixture[str]) -> None:
    console = Console(json=True)
    console.result("text")
    console.table(["a"], [["1"]])
    console.emit_json({"a": 1})
    assert json.loads(capsys.readouterr().out) == {"a": 1}


def test_a_piped_table_wraps_nothing_and_keeps_brackets(
    capsys: pytest.CaptureFixture[str],
) -> None:
    console = Console()
    long_cell = "word " * 60 + "[red]"
    console.table(["name", "count"], [[long_cell, "1"], ["b", "20"]], right=["count"])
    lines = capsys.readouterr().out.splitlines()
    assert long_cell in lines[2]
    assert lines[2].rstrip().endswith(" 1")
    assert lines[3].rstrip().endswith("20")


@pytest.mark.parametrize("width", [40, 80])
def test_a_narrow_terminal_loses_nothing_of_a_table(
    width: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Names and figures used to end in dots, at 40 columns all of them.
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setenv("TERM", "xterm")
    columns = ["case", "elements", "worst figure", "limit", "verdict"]
    row = ["gelu_custom_tuned-float16-2x3x17-normal", "102", "MERE 1.61e-04", "9.77e-04", "pass"]
    Console().table(columns, [row, row], right=["elements"])
    lines = re.sub(r"\x1b\[[\d;]*m", "", capsys.readouterr().out).splitlines()
    assert max(map(len, lines)) <= width
    text = "".join("".join(line.split()) for line in lines)
    if width == 40:
        assert text.count("".join(row[0].split())) == 2
        assert [line.split()[0] for line in lines if line.strip()].count("verdict") == 2
    assert text.count("9.77e-04") == 2 and "…" not in text and "1.61e-04" in text


def test_progress_is_silent_without_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    with Console().progress("test", 2) as bar:
        bar.advance("one")
        bar.advance("two")
    printed = capsys.readouterr()
    assert printed.out + printed.err == ""


class Terminal:
    def isatty(self) -> bool:
        return True


def test_colour_needs_a_terminal_and_obeys_no_color(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert wants_colour(Terminal())  # type: ignore[arg-type]
    monkeypatch.setenv("NO_COLOR", "1")
    assert not wants_colour(Terminal())  # type: ignore[arg-type]
    monkeypatch.delenv("NO_COLOR")
    monkeypatch.setenv("TERM", "dumb")
    assert not wants_colour(Terminal())  # type: ignore[arg-type]


@dataclass(frozen=True)
class Point:
    place: Path
    values: tuple[float, ...]


def test_to_json_takes_dataclasses_paths_numpy_and_non_finite_numbers() -> None:
    value = {"p": Point(Path("a"), (1.5, math.nan, -math.inf)), "n": np.float32(2), "s": {2, 1}}
    assert to_json(value) == {
        "p": {"place": "a", "values": [1.5, "nan", "-inf"]},
        "n": 2.0,
        "s": [1, 2],
    }


def test_a_closed_pipe_is_quiet() -> None:
    script = (
        "import sys, click\n"
        "from opkit.cli.console import run_guarded\n"
        "@click.command()\n"
        "def command():\n"
        "    for _ in range(100000): click.echo('line')\n"
        "sys.exit(run_guarded(command, []))\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
    ) as process:
        assert process.stdout is not None and process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait() == 141


def test_sigterm_cleans_up_behind_a_command(tmp_path: Path) -> None:
    script = """
import os, signal, sys, tempfile, click
from opkit.cli.console import run_guarded

@click.command()
def wait():
    with tempfile.TemporaryDirectory(dir=sys.argv[1]):
        os.kill(os.getpid(), signal.SIGTERM)
        signal.pause()

sys.exit(run_guarded(wait, []))
"""
    argv = [sys.executable, "-c", script, str(tmp_path)]
    done = subprocess.run(argv, check=False, timeout=60, cwd=Path(__file__).parents[2])
    assert done.returncode == 143
    assert list(tmp_path.iterdir()) == []
