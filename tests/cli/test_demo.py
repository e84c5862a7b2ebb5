"""`opkit demo`: where it writes, what it runs, and how it stops."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import opkit
from opkit.cli import group
from opkit.cli.commands.demo import steps
from opkit.cli.console import run_guarded
from opkit.schema import load
from opkit.toolchain import OPKIT_COMMAND

ROOT = Path(__file__).parents[2]
PROTOTYPE = ROOT / "opkit" / "cli" / "commands" / "data" / "gelu_custom.json"


class Runs:
    """Stands in for subprocess.run; the command that contains `failing` exits 4."""

    def __init__(self, failing: str = "nothing") -> None:
        self.failing = failing
        self.argvs: list[list[str]] = []

    def __call__(self, argv: list[str], **options: Any) -> subprocess.CompletedProcess[str]:
        self.argvs.append(argv)
        return subprocess.CompletedProcess(argv, 4 if self.failing in argv else 0)


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Runs:
    recorder = Runs()
    monkeypatch.setattr("opkit.cli.commands.demo.subprocess.run", recorder)
    monkeypatch.chdir(tmp_path)
    return recorder


def test_the_prototype_is_the_published_example_and_has_a_formula() -> None:
    example = ROOT / "examples" / "prototypes" / "gelu_custom.json"
    assert PROTOTYPE.read_bytes() == example.read_bytes()
    (spec,) = load(PROTOTYPE)
    assert spec.name == "gelu_custom"
    assert spec.has_formula


def test_every_command_is_printed_before_it_runs(
    runs: Runs, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_guarded(group, ["demo"]) == 0
    printed = capsys.readouterr().err
    for verb in ("gen", "build", "test", "profile"):
        assert f"$ opkit {verb} " in printed
    assert "$ python -m pip install --quiet --no-build-isolation --no-deps ./gelu_custom" in printed
    assert "y = gelu_custom.gelu_custom(x)" in printed
    assert printed.count("\n$ ") == len(runs.argvs)


def test_what_is_printed_is_what_is_run(tmp_path: Path) -> None:
    for step in steps(tmp_path / "my op", with_torch=True):
        shown = shlex.split(shlex.join(step.shown))
        if step.script:
            assert shown == ["python", "-"]
        else:
            prefix = OPKIT_COMMAND if shown[0] == "opkit" else [sys.executable]
            assert list(step.argv) == [*prefix, *shown[1:]]


@pytest.mark.parametrize("safe_path", ["", "1"])
@pytest.mark.parametrize("script", [False, True])
def test_a_checkout_in_the_users_folder_hides_nothing(
    tmp_path: Path, script: bool, safe_path: str
) -> None:
    (tmp_path / "opkit").mkdir()
    (tmp_path / "opkit" / "__init__.py").write_text("raise SystemExit('the wrong opkit')")
    chosen = next(
        step for step in steps(Path("x"), with_torch=False) if bool(step.script) == script
    )
    argv = chosen.argv if script else (*OPKIT_COMMAND, "--version")
    done = subprocess.run(
        argv,
        cwd=tmp_path,
        input="import opkit; print(f'opkit {opkit.__version__}')",
        env={
            **os.environ,
            "PYTHONPATH": str(Path(opkit.__file__).parents[1]),
            "PYTHONSAFEPATH": safe_path,
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"opkit {opkit.__version__}\n"


def test_it_works_in_the_folder_that_it_names(
    runs: Runs, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_guarded(group, ["demo", "elsewhere"]) == 0
    assert (tmp_path / "elsewhere" / "gelu_custom.json").read_bytes() == PROTOTYPE.read_bytes()
    printed = capsys.readouterr()
    assert str(tmp_path / "elsewhere") in printed.err
    assert "elsewhere/op_kernel/gelu_custom.cpp" in printed.out


def test_torch_is_called_only_where_it_is_installed(tmp_path: Path) -> None:
    without, with_it = (steps(tmp_path, with_torch=flag) for flag in (False, True))
    assert not any("torch" in step.script for step in without)
    assert "import torch" in with_it[-1].script


def test_it_stops_at_the_first_failure_with_its_exit_code(
    runs: Runs, capsys: pytest.CaptureFixture[str]
) -> None:
    runs.failing = "test"
    assert run_guarded(group, ["demo"]) == 4
    assert [argv[2] for argv in runs.argvs] == ["gen", "build", "test"]
    printed = capsys.readouterr()
    assert "opkit test gelu_custom: exit code 4" in printed.err
    assert printed.out == ""


def test_its_own_folder_is_taken_again(runs: Runs) -> None:
    assert run_guarded(group, ["demo"]) == 0
    assert run_guarded(group, ["demo"]) == 0


@pytest.mark.parametrize("name", ["README.md", "gelu_custom.json"])
def test_a_folder_with_other_things_is_refused_untouched(
    runs: Runs, tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    (tmp_path / "gelu_custom").mkdir()
    (tmp_path / "gelu_custom" / name).write_text("mine")
    assert run_guarded(group, ["demo"]) == 2
    assert "not empty" in capsys.readouterr().err
    assert runs.argvs == []
    assert (tmp_path / "gelu_custom" / name).read_text() == "mine"


def test_a_file_in_its_place_is_refused(
    runs: Runs, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "gelu_custom").write_text("mine")
    assert run_guarded(group, ["demo"]) == 2
    assert "gelu_custom is a file" in capsys.readouterr().err


def test_json_lists_the_steps_and_nothing_else_on_stdout(
    runs: Runs, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs.failing = "build"
    assert run_guarded(group, ["demo", "--json"]) == 4
    document = json.loads(capsys.readouterr().out)
    assert document["ok"] is False
    assert document["directory"] == str(tmp_path / "gelu_custom")
    assert [step["exit_code"] for step in document["steps"]] == [0, 4]
