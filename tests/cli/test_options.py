"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path

import click
import pytest

from opkit.cli import group
from opkit.cli.console import run_guarded
from opkit.cli.options import FiniteRange

from ..all_commands import all_commands


def test_every_option_with_a_float_refuses_what_is_no_number() -> None:
    # `judge --timeout inf` refused right candidates; `--base nan` gave no score.
    for called, each in all_commands(group, ""):
        for option in each.params:
            if isinstance(option.type, (click.types.FloatParamType, click.FloatRange)):
                assert isinstance(option.type, FiniteRange), f"{called} {option.name}"


@pytest.mark.parametrize("value", ["nan", "inf", "-inf", "1e300", "-1"])
def test_a_number_that_is_none_is_an_error_of_usage(value: str) -> None:
    with pytest.raises(click.BadParameter):
        FiniteRange(0).convert(value, None, None)
    assert FiniteRange(0).convert("2.5", None, None) == 2.5


def test_memory_beyond_every_machine_is_an_error_of_usage(tmp_path: Path) -> None:
    arguments = ["judge", str(tmp_path), "--task", "none.json", "--memory", "99999999999999999"]
    assert run_guarded(group, arguments) == 2


def test_a_list_of_candidates_that_is_no_text_is_an_error_of_usage(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # It was exit code 70 with a traceback.
    (tmp_path / "list").write_bytes(b"\xff\xfe\0")
    arguments = ["judge", "--task", "none.json", "--batch", str(tmp_path / "list")]
    assert run_guarded(group, arguments) == 2
    assert "is no text in UTF-8: byte 0 is 0xff" in capsys.readouterr().err


@pytest.mark.parametrize("columns", [40, 80])
def test_help_fits_the_terminal(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    for name, command in all_commands(group, ""):
        context = command.context_class(command, info_name=f"opkit {name}".strip())
        lines = command.get_help(context).splitlines()
        assert max(map(len, lines)) <= columns, name
