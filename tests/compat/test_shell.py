"""READMEs' shell lines become words."""

from __future__ import annotations

import pytest

from opkit.compat.shell import assignment_of, commands_of, expand


@pytest.mark.parametrize(
    ("line", "commands"),
    [
        ("mkdir -p build && cd build;   # a folder", [["mkdir", "-p", "build"], ["cd", "build"]]),
        ("cmake ..;make -j;", [["cmake", ".."], ["make", "-j"]]),
        ("./demo 2>&1 | tee run.log", [["./demo"]]),
        ("./demo > log.txt; ls", [["./demo"], ["ls"]]),
        ('python3 a.py --shape="1, 2"', [["python3", "a.py", "--shape=1, 2"]]),
        ("# nothing at all", []),
    ],
)
def test_a_line_becomes_its_commands(line: str, commands: list[list[str]]) -> None:
    assert commands_of([line]) == commands


def test_a_backslash_joins_lines() -> None:
    assert commands_of(["cmake .. \\", "  -DX=1"]) == [["cmake", "..", "-DX=1"]]


def test_an_open_quotation_is_an_error() -> None:
    with pytest.raises(ValueError, match="quotation"):
        commands_of(['echo "never ends'])


def test_variables_are_replaced_and_unknown_ones_are_empty() -> None:
    assert expand("-DN=$N/${M}x$K", {"N": "1", "M": "2"}) == "-DN=1/2x"


def test_only_names_are_assigned_to() -> None:
    assert assignment_of("N=a=b") == ("N", "a=b")
    assert assignment_of("-DN=1") is None
    assert assignment_of("make") is None
