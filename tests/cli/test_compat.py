"""`opkit compat` and `opkit isa --missing` as a user calls them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from opkit.cli import group
from opkit.cli.console import run_guarded

Capture = pytest.CaptureFixture[str]
DATA = Path(__file__).parents[1] / "compat" / "data"


def opkit(*arguments: str) -> int:
    return run_guarded(group, list(arguments))


def test_a_scan_shows_names_and_share(tmp_path: Path, capsys: Capture) -> None:
    shutil.copytree(DATA, tmp_path / "samples")
    assert opkit("compat", "scan", str(tmp_path / "samples")) == 0
    shown = capsys.readouterr().out
    assert "WishParams" in shown
    assert "4 of 5 kernels (80%) use no missing name" in shown
    # The share stood there alone, which read as "80 % build".
    assert "no library of operators is here" in shown


def test_a_scan_as_json(capsys: Capture) -> None:
    assert opkit("compat", "scan", str(DATA), "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["kernels"], found["complete"], found["share"]) == (5, 4, 0.8)
    assert {want["name"] for want in found["missing"]} == {"Wish", "WishParams"}
    assert found["is_library"] is False


def test_a_sample_that_does_not_build_exits_1(capsys: Capture) -> None:
    assert opkit("compat", str(DATA), "-k", "missing_name", "-j", "1", "--json") == 1
    found = json.loads(capsys.readouterr().out)
    assert (found["samples"], found["samples_passed"]) == (1, 0)
    assert found["counts"]["build error"] == 1
    (outcome,) = found["outcomes"]
    assert outcome["missing"] == ["WishParams", "Wish"]


def test_a_table_ends_in_the_counts(capsys: Capture) -> None:
    assert opkit("compat", str(DATA), "-k", "lone", "-j", "1") == 0
    shown = capsys.readouterr().out
    assert "it builds, and there is nothing to run" in shown
    assert "1 scenarios: 1 unverified" in shown
    assert "0 of 1 samples pass" in shown


def test_wrong_calls_are_told(tmp_path: Path, capsys: Capture) -> None:
    assert opkit("compat", str(tmp_path / "absent")) == 2
    assert "there is no such folder" in capsys.readouterr().err
    assert opkit("compat", str(tmp_path)) == 2
    assert "has no samples" in capsys.readouterr().err
    assert opkit("compat", str(DATA), "-k", "absent") == 2
    assert "names look like doubles" in capsys.readouterr().err
    assert opkit("compat", "scan", str(DATA), "-k", "lone") == 2


def test_the_flags_of_before_are_taken_on_with_a_note(capsys: Capture) -> None:
    # Five modes in one command took each other's options, and refused them by hand.
    assert opkit("compat", "scan", str(DATA), "--json") == 0
    now = capsys.readouterr()
    assert opkit("compat", str(DATA), "--scan", "--json") == 0
    before = capsys.readouterr()
    assert before.out == now.out and now.err == ""
    assert "--scan is a command now: opkit compat scan DIR" in before.err
    assert opkit("compat", "--scan", "--build", str(DATA)) == 2
    assert "--scan and --build do not go together" in capsys.readouterr().err
    assert opkit("compat", "scan", str(DATA), "--resume", "results.jsonl") == 2


def test_a_folder_alone_is_for_run(tmp_path: Path, capsys: Capture) -> None:
    for words in (("compat",), ("compat", "run")):
        assert opkit(*words, "-j", "1", str(tmp_path)) == 2
        assert "has no samples" in capsys.readouterr().err


def test_missing_names_are_those_without_a_declaration(capsys: Capture) -> None:
    assert opkit("isa", "--missing", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    missing = {entry["name"] for entry in found["missing"]}
    assert found["names"] > 600
    assert not missing & {"Add", "DataCopy", "LocalTensor", "Exp", ".EnQue", "PIPE_*"}
    assert "Reg::RegTensor" in missing


def test_missing_names_stand_by_class_with_totals(capsys: Capture) -> None:
    assert opkit("isa", "--missing") == 0
    shown = capsys.readouterr().out
    assert "public names are declared" in shown
    assert "T1: " in shown
    assert opkit("isa", "--missing", "Add") == 2


@pytest.mark.slow
def test_mutants_of_a_sample_are_scored(capsys: Capture) -> None:
    assert opkit("compat", "mutate", str(DATA), "-k", "doubles", "-j", "2", "--json") == 0
    (report,) = json.loads(capsys.readouterr().out)
    assert report["killed"] > 0
