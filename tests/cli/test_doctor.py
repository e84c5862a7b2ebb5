"""`opkit doctor`."""

from __future__ import annotations

import json

import pytest

import opkit.toolchain
from opkit.cli import group
from opkit.cli.console import run_guarded
from opkit.toolchain import Check

GOOD = Check("python", True, True, "3.11.7")
OPTIONAL = Check("torch", False, False, "not installed", fix="pip install torch")
MISSING = Check("compiler", False, True, "none was found", fix="sudo apt-get install g++")


def checks(monkeypatch: pytest.MonkeyPatch, *found: Check) -> None:
    monkeypatch.setattr(opkit.toolchain, "check_machine", lambda **options: found)


def test_a_whole_machine_exits_0(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    checks(monkeypatch, GOOD, OPTIONAL)
    assert run_guarded(group, ["doctor"]) == 0
    out = capsys.readouterr().out
    assert "ok  python" in out
    assert "optional  torch" in out
    assert "fix: pip install torch" in out


def test_something_missing_exits_3_and_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    checks(monkeypatch, GOOD, MISSING)
    assert run_guarded(group, ["doctor"]) == 3
    out, err = capsys.readouterr()
    assert "missing  compiler" in out
    assert "fix: sudo apt-get install g++" in out
    assert "compiler" in err


@pytest.mark.parametrize(("found", "code"), [((GOOD,), 0), ((GOOD, MISSING), 3)])
def test_json_carries_the_verdict(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    found: tuple[Check, ...],
    code: int,
) -> None:
    checks(monkeypatch, *found)
    assert run_guarded(group, ["doctor", "--json"]) == code
    document = json.loads(capsys.readouterr().out)
    assert document["ok"] is (code == 0)
    assert [row["name"] for row in document["checks"]] == [check.name for check in found]


def test_fix_installs_what_pip_can_and_checks_again(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ninja = Check("ninja", False, False, "not found", fix="pip install ninja", package="ninja")
    rounds = iter([(GOOD, ninja, OPTIONAL), (GOOD, Check("ninja", True, False, "1.13"))])
    monkeypatch.setattr(opkit.toolchain, "check_machine", lambda **options: next(rounds))
    asked: list[list[str]] = []
    monkeypatch.setattr(
        opkit.toolchain,
        "install_missing",
        lambda checks, verbose: asked.append([c.package for c in checks if not c.ok]),
    )
    assert run_guarded(group, ["doctor", "--fix"]) == 0
    assert asked == [["ninja", ""]]  # torch has none: it is not installed unasked
    assert "ok  ninja" in capsys.readouterr().out


@pytest.mark.torch
def test_the_device_is_looked_at_where_torch_is_and_built_by_fix(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # Only the first tensor on npu built it, in the middle of a program.
    from opkit import torch_npu

    checks(monkeypatch, GOOD, Check("torch", True, False, "2.13.0"))
    built: list[str] = []
    monkeypatch.setattr(torch_npu, "is_built", lambda: bool(built), raising=False)
    monkeypatch.setattr(torch_npu, "libraries", lambda: built.append("npu"), raising=False)
    assert run_guarded(group, ["doctor"]) == 0
    out = capsys.readouterr().out
    assert "optional  npu" in out
    assert "fix: opkit build --device" in out
    assert run_guarded(group, ["doctor", "--fix"]) == 0
    assert built == ["npu"]
    assert "ok  npu" in capsys.readouterr().out
