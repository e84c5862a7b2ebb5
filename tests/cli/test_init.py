"""`opkit init`: options stand for a prototype."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from opkit.cli import group
from opkit.cli.console import run_guarded


def test_a_formula_on_the_command_line_is_a_project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    arguments = ["init", "Swish", "--formula", "x * sigmoid(beta * x)", "--attr", "beta=1.0"]
    assert run_guarded(group, [*arguments, "--type", "float16"]) == 0
    entry = json.loads((tmp_path / "swish" / "swish.json").read_text())
    assert entry == {
        "op": "Swish",
        "input_desc": [{"name": "x", "type": ["float16"]}],
        "output_desc": [{"name": "y", "type": ["float16"], "formula": "x * sigmoid(beta * x)"}],
        "attr": [{"name": "beta", "type": "float", "param_type": "optional", "default_value": 1.0}],
    }
    assert (tmp_path / "swish" / "swish_grad.json").is_file()
    settings = (tmp_path / "swish" / "pyproject.toml").read_text()
    # An operator used to install beside any later opkit, and to fail when it was called.
    assert '"opkit>=0.1.0,<0.2"' in settings


def test_outputs_inputs_and_types_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    arguments = ["init", "Pair", "--input", "a", "--input", "b", "--type", "float32"]
    outputs = ["--formula", "s = a + b", "--formula", "d = a - b", "--attr", "k:int=3"]
    assert run_guarded(group, [*arguments, *outputs, "-o", "here"]) == 0
    entry = json.loads((tmp_path / "here" / "pair.json").read_text())
    assert [row["name"] for row in entry["input_desc"]] == ["a", "b"]
    assert [(row["name"], row["formula"]) for row in entry["output_desc"]] == [
        ("s", "a + b"),
        ("d", "a - b"),
    ]
    assert entry["attr"][0]["default_value"] == 3


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["Bad", "--formula", "tahn(x)"], "tahn"),
        (["Bad", "--input", "x y"], "is no tensor"),
        (["Bad", "--attr", "1=2=3 4"], "attr"),
    ],
)
def test_what_is_wrong_leaves_no_folder(
    arguments: list[str],
    words: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run_guarded(group, ["init", *arguments]) == 2
    assert words in capsys.readouterr().err


def test_a_folder_that_is_there_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "swish").mkdir()
    (tmp_path / "swish" / "mine").write_text("")
    assert run_guarded(group, ["init", "Swish", "--formula", "x"]) == 2
    assert "swish is there already" in capsys.readouterr().err
