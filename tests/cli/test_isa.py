"""`opkit isa` on the real instruction table."""

from __future__ import annotations

import json

import pytest

from opkit.cli import group
from opkit.cli.console import run_guarded

Capture = pytest.CaptureFixture[str]


def isa(*arguments: str) -> int:
    return run_guarded(group, ["isa", *arguments])


def test_every_row_has_a_family_a_cost_and_types_for_each_chip(capsys: Capture) -> None:
    assert isa("--json") == 0
    rows = json.loads(capsys.readouterr().out)
    assert len({row["name"] for row in rows}) == len(rows) > 20
    for row in rows:
        assert row["family"] and row["cost"], row
        assert set(row["dtypes"]) == {"dav-2201", "dav-2002"}, row


def test_one_instruction_shows_types_and_costs_with_their_source(capsys: Capture) -> None:
    assert isa("exp") == 0
    text = capsys.readouterr().out
    assert text.startswith("Exp ")
    assert "float16 float32" in text
    assert "4 cycles a repeat  (vector instruction theoretical performance summary" in text


def test_an_override_for_one_instruction_beats_its_class(capsys: Capture) -> None:
    assert isa("Rsqrt") == 0
    text = capsys.readouterr().out
    assert "any" in text
    assert "1 cycles a repeat" in text


def test_an_unknown_instruction_gets_the_nearest_one(capsys: Capture) -> None:
    assert isa("Expp") == 2
    assert 'did you mean "Exp"?' in capsys.readouterr().err


def test_the_missing_names_include_those_outside_the_list(capsys: Capture) -> None:
    assert isa("--missing", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    missing = {entry["name"] for entry in found["missing"]}
    assert "RESERVED_WORKSPACE" in missing
    assert "BatchNorm" in found["unlisted"] and "LoadImageToLocalParams" in found["unlisted"]
    assert not missing & set(found["unlisted"])
