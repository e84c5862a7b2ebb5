"""The command group: what it lists, and how it finds a command."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import click
import pytest

import opkit
from opkit.cli import COMMANDS, group
from opkit.cli.console import run_guarded

ROOT = Path(__file__).parents[2]


def test_help_lists_every_command_with_its_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_guarded(group, ["--help"]) == 0
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    for name, text in COMMANDS.items():
        assert f"{name} {text}" in lines


@pytest.mark.parametrize("name", COMMANDS)
def test_the_table_says_what_the_command_says_of_itself(name: str) -> None:
    command = group.get_command(click.Context(group), name)
    assert command is not None
    assert command.get_short_help_str(limit=60) == COMMANDS[name]


# Commands whose stdout is another program's.
PASS_THROUGH = {"run"}


def test_a_command_that_passes_output_through_refuses_json(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for name in PASS_THROUGH:
        assert run_guarded(group, [name, "--json", "program"]) == 2
        assert "JSON" in json.loads(capsys.readouterr().out)["error"]["message"]


@pytest.mark.parametrize("name", COMMANDS)
def test_every_help_has_an_example(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_guarded(group, [name, "--help"]) == 0
    assert f"Example: opkit {name}" in capsys.readouterr().out


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_takes_the_common_options(name: str) -> None:
    command = group.get_command(click.Context(group), name)
    assert command is not None
    for one in command.commands.values() if isinstance(command, click.Group) else (command,):
        options = {option for parameter in one.params for option in parameter.opts}
        assert {"--json", "-v", "--verbose", "-q", "--quiet"} <= options, one.name


def test_every_command_file_is_in_the_table() -> None:
    folder = ROOT / "opkit" / "cli" / "commands"
    files = {path.stem for path in folder.glob("*.py")}
    files |= {path.parent.name for path in folder.glob("*/__init__.py")}
    commands = {name.replace("_", "-") for name in files if not name.startswith("_")}
    assert commands == set(COMMANDS)


def test_help_lines_are_imperatives_under_60_characters() -> None:
    for name, text in COMMANDS.items():
        assert len(text) < 60, name
        assert text.endswith("."), name


def test_an_unknown_command_names_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_guarded(group, ["biuld"]) == 2
    printed = capsys.readouterr().err
    assert 'there is no command "biuld"' in printed
    assert 'did you mean "opkit build"?' in printed


def test_a_command_like_no_other_points_at_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_guarded(group, ["xyzzy"]) == 2
    assert "opkit --help" in capsys.readouterr().err


def test_no_arguments_show_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_guarded(group, []) == 0
    assert "Commands:" in capsys.readouterr().out


@pytest.mark.parametrize("option", ["-V", "--version"])
def test_the_version_is_the_packages(option: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_guarded(group, [option]) == 0
    assert capsys.readouterr().out == f"opkit {opkit.__version__}\n"


def test_the_module_runs_as_a_program() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "opkit", "--version"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == f"opkit {opkit.__version__}\n"
