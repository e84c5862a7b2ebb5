"""Finding a compiler among what a machine has."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from opkit.errors import SetupError
from opkit.toolchain import compiler as compiler_module
from opkit.toolchain import compiler_choice, find_compiler


@pytest.fixture(autouse=True)
def nothing_is_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    compiler_module._probe.cache_clear()
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setattr(compiler_module.importlib.util, "find_spec", lambda name: None)


def program(folder: Path, name: str, answer: str, code: int = 0) -> Path:
    path = folder / name
    path.write_text(f"#!/bin/sh\ncat <<'END'\n{answer}\nEND\nexit {code}\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def path_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An otherwise empty PATH: /bin/sh starts by its absolute name, `cat` is linked in."""
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "cat").symlink_to("/bin/cat")
    monkeypatch.setenv("PATH", str(folder))
    return folder


def test_gcc_is_told_by_its_last_version_number(path_only: Path) -> None:
    program(path_only, "g++", "g++ (Debian 12.2.0-14+deb12u1) 12.2.1\nCopyright")
    found = find_compiler()
    assert (found.family, found.version) == ("gcc", "12.2.1")
    assert found.argv == (str(path_only / "g++"),)


def test_clang_is_told_by_its_name(path_only: Path) -> None:
    program(path_only, "clang++", "Debian clang version 14.0.6\nTarget: x86_64-pc-linux-gnu")
    found = find_compiler()
    assert (found.family, found.version) == ("clang", "14.0.6")


def test_cxx_comes_first_and_may_have_several_words(
    path_only: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(path_only, "g++", "g++ 12.2.0")
    program(path_only, "wrap", "g++ 13.1.0")
    monkeypatch.setenv("CXX", "wrap g++")
    found = find_compiler()
    assert (found.argv, found.version) == (("wrap", "g++"), "13.1.0")


def test_what_the_choice_depends_on_is_told_without_starting_a_program(
    path_only: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compiler_module.subprocess, "run", None)
    found = program(path_only, "g++", "g++ (GCC) 12.2.0")
    assert compiler_choice() == ["", str(found)]
    monkeypatch.setenv("CXX", "ccache g++")
    assert compiler_choice() == ["ccache g++", str(found)]


def test_a_cxx_that_is_not_there_is_named(path_only: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", "no-such-compiler")
    with pytest.raises(SetupError, match="no-such-compiler") as caught:
        find_compiler()
    assert caught.value.exit_code == 3


def test_a_cxx_that_is_no_compiler_is_refused(
    path_only: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(path_only, "odd", "", code=1)
    monkeypatch.setenv("CXX", "odd")
    with pytest.raises(SetupError, match="does not answer --version"):
        find_compiler()


def test_no_compiler_gives_the_line_that_installs_one(path_only: Path) -> None:
    program(path_only, "apt-get", "")
    with pytest.raises(SetupError, match=r"no C\+\+17 compiler was found") as caught:
        find_compiler()
    assert caught.value.exit_code == 3
    assert "sudo apt-get install g++" in str(caught.value)
    assert "pip install ziglang" in str(caught.value)


def test_an_old_compiler_is_passed_over_and_named(path_only: Path) -> None:
    program(path_only, "g++", "g++ (GCC) 7.5.0")
    with pytest.raises(SetupError, match=r"gcc 7\.5\.0.*is too old"):
        find_compiler()


def test_an_old_first_choice_gives_way_to_a_newer_one(path_only: Path) -> None:
    program(path_only, "c++", "c++ (GCC) 7.5.0")
    program(path_only, "clang++", "clang version 16.0.0")
    assert find_compiler().family == "clang"


def test_the_ziglang_wheel_is_the_last_resort(
    path_only: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found_spec = object()
    monkeypatch.setattr(
        compiler_module.importlib.util,
        "find_spec",
        lambda name: found_spec if name == "ziglang" else None,
    )
    python = program(path_only, "python", "clang version 19.1.7")
    monkeypatch.setattr(sys, "executable", str(python))
    found = find_compiler()
    assert found.argv == (str(python), "-m", "ziglang", "c++")
    assert found.family == "clang"


def test_another_binary_of_the_same_version_is_another_compiler(path_only: Path) -> None:
    path = program(path_only, "g++", "g++ 12.2.0")
    before = find_compiler().identity
    compiler_module._probe.cache_clear()
    path.write_text(path.read_text() + "# patched\n")
    assert find_compiler().identity != before


@pytest.mark.parametrize(
    "name",
    ["CPATH", "CPLUS_INCLUDE_PATH", "C_INCLUDE_PATH", "LIBRARY_PATH", "GCC_EXEC_PREFIX"],
)
def test_what_the_environment_tells_a_compiler_makes_it_another(
    path_only: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    program(path_only, "g++", "g++ 12.2.0")
    monkeypatch.delenv(name, raising=False)
    before = find_compiler().identity
    monkeypatch.setenv(name, "/somewhere")
    there = find_compiler().identity
    monkeypatch.setenv(name, "/elsewhere")
    assert len({before, there, find_compiler().identity}) == 3
    monkeypatch.delenv(name)
    assert find_compiler().identity == before


def test_another_linker_on_path_makes_another_compiler(path_only: Path) -> None:
    program(path_only, "g++", "g++ 12.2.0")
    before = find_compiler().identity
    program(path_only, "ld", "GNU ld 2.40")
    assert find_compiler().identity != before
