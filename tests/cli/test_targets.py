"""`opkit targets`."""

from __future__ import annotations

import json

import pytest

from opkit.chips import all_chips, find_chip
from opkit.cli import group
from opkit.cli.console import run_guarded


def test_every_chip_is_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_guarded(group, ["targets"]) == 0
    out = capsys.readouterr().out
    for chip in all_chips():
        line = next(line for line in out.splitlines() if line.startswith(chip.name))
        assert chip.npu_arch in line
        assert f" {chip.number('clock.mhz'):g} " in line
        assert f" {chip.count('memory.ub_bytes') // 1024} " in line


def test_a_chip_is_shown_with_the_source_of_each_number(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run_guarded(group, ["targets", "910b2"]) == 0
    lines = capsys.readouterr().out.splitlines()
    line = next(line for line in lines if line.startswith("memory.ub_bytes"))
    assert "196608" in line
    assert "2201" in line


def test_json_lists_the_chips_with_their_sizes(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_guarded(group, ["targets", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["name"] for row in rows] == [chip.name for chip in all_chips()]
    assert rows[0]["ub_bytes"] == 192 * 1024
    assert [row["default"] for row in rows].count(True) == 1


def test_json_of_one_chip_has_every_number(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_guarded(group, ["targets", "310P3", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["numbers"]["cores.vector"]["value"] == 7
    assert document["numbers"]["cores.vector"]["source"]


def test_an_unknown_chip_exits_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_guarded(group, ["targets", "h100"]) == 2
    assert '"h100"' in capsys.readouterr().err


def test_guesses_of_a_chip_are_what_profile_counts(capsys: pytest.CaptureFixture[str]) -> None:
    # Each number of an Ascend910B3 said "assumed", documents of the architecture or not.
    assert run_guarded(group, ["targets", "910b3", "--guesses", "--json"]) == 0
    numbers = json.loads(capsys.readouterr().out)["numbers"]
    assert tuple(numbers) == find_chip("910b3").guesses
    assert all(entry["source"].startswith("guess") for entry in numbers.values())
    assert run_guarded(group, ["targets", "--guesses"]) == 2
