"""The checks behind `opkit doctor`, on this machine and on one that lacks things."""

from __future__ import annotations

from pathlib import Path

import pytest

import opkit.emulator
from opkit.errors import SetupError
from opkit.toolchain import Check, check_machine, health


def by_name(cache_dir: Path) -> dict[str, Check]:
    return {check.name: check for check in check_machine(cache_dir=cache_dir)}


def test_what_runs_these_tests_is_there(tmp_path: Path) -> None:
    checks = by_name(tmp_path)
    assert checks["python"].ok
    assert checks["numpy"].ok
    assert checks["cache"].ok


def test_a_check_that_fails_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CXX", "no-such-compiler")
    monkeypatch.setattr(opkit.emulator, "__path__", [])
    monkeypatch.setattr(health.importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(health.shutil, "which", lambda name: None)
    failed = [check for check in check_machine(cache_dir=tmp_path) if not check.ok]
    names = {check.name for check in failed}
    assert {"compiler", "emulator", "numpy", "pybind11", "torch", "cmake"} <= names
    assert all(check.fix for check in failed)
    needed = {check.name for check in failed if check.needed}
    assert needed == {"compiler", "emulator", "numpy", "pybind11"}


def test_a_compiler_that_answers_but_cannot_compile_is_found_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = tmp_path / "fake++"
    fake.write_text(
        '#!/bin/sh\n[ "$1" = --version ] && echo "g++ 12.2.0" && exit 0\n'
        'echo "fake++: error: no headers"\nexit 1\n'
    )
    fake.chmod(0o755)
    monkeypatch.setenv("CXX", str(fake))
    checks = by_name(tmp_path)
    assert checks["compiler"].ok
    assert not checks["c++17"].ok
    assert "no headers" in checks["c++17"].detail


def test_a_library_that_cannot_be_loaded_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "include").mkdir()
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / opkit.emulator.LIBRARY_NAME).write_bytes(b"not a library")
    monkeypatch.setattr(opkit.emulator, "__path__", [str(tmp_path)])
    check = by_name(tmp_path)["emulator"]
    assert not check.ok
    assert "cannot be loaded" in check.detail


def test_a_cache_below_a_missing_folder_is_looked_up_at_its_parent(tmp_path: Path) -> None:
    assert by_name(tmp_path / "a" / "b")["cache"].ok


def test_no_compiler_leaves_one_check_with_the_install_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def nothing() -> None:
        raise SetupError("no C++17 compiler was found", help="dnf install gcc-c++")

    monkeypatch.setattr(health, "find_compiler", nothing)
    checks = by_name(tmp_path)
    assert checks["compiler"].fix == "dnf install gcc-c++"
    assert "c++17" not in checks
