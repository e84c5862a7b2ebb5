"""Where samples state the values of their options."""

from __future__ import annotations

from pathlib import Path

import pytest

from opkit.compat.recipe import find_recipes
from opkit.compat.scenarios import scenarios_of

README = """
```bash
SCENARIO_NUM=1
cmake -DSCENARIO_NUM=$SCENARIO_NUM -DCMAKE_ASC_ARCHITECTURES=dav-2201 .. && make
./demo
```
"""


def names(folder: Path, cmake: str, readme: str = README) -> list[str]:
    (folder / "CMakeLists.txt").write_text(cmake, encoding="utf-8")
    (folder / "README.md").write_text(readme, encoding="utf-8")
    found = scenarios_of(folder, find_recipes(folder))
    return [scenario.name.removeprefix("SCENARIO_NUM=") for scenario in found]


@pytest.mark.parametrize(
    ("cmake", "values"),
    [
        ('if(NOT SCENARIO_NUM MATCHES "^[1-4]$")', "1 2 3 4"),
        ('if(NOT SCENARIO_NUM MATCHES "^([1-9]|1[0-1])$")', "1 2 3 4 5 6 7 8 9 10 11"),
        ("set(VALID 1 2 3)\nif(NOT SCENARIO_NUM IN_LIST VALID)", "1 2 3"),
        ("set_property(CACHE SCENARIO_NUM PROPERTY STRINGS 1 7)", "1 7"),
        ('set(SCENARIO_NUM "1" CACHE STRING "Scene number (1,2,3)")', "1 2 3"),
        ('set(SCENARIO_NUM 1 CACHE STRING "Case type (1-3)")', "1 2 3"),
        ('set(SCENARIO_NUM 1 CACHE STRING "Scenario (1 or 2)")', "1 2"),
        ('set(SCENARIO_NUM 1 CACHE STRING "Scenario 1,2,3")', "1 2 3"),
        ('if(NOT SCENARIO_NUM STREQUAL "1" AND NOT SCENARIO_NUM STREQUAL "9")', "1 9"),
    ],
)
def test_cmake_states_the_values(tmp_path: Path, cmake: str, values: str) -> None:
    assert names(tmp_path, cmake) == values.split()


@pytest.mark.parametrize(
    "cell", ["`1` (default), `2`, `3`", "`1`（默认）、`2`、`3`", "1-3", "`1`~`3`"]
)
def test_the_readmes_table_states_the_values(tmp_path: Path, cell: str) -> None:
    table = f"| option | values |\n|---|---|\n| `SCENARIO_NUM` | {cell} | 7 to 9 cores |\n"
    assert names(tmp_path, "project(x)", README + table) == ["1", "2", "3"]


def test_without_a_statement_there_is_the_readmes_scenario_alone(tmp_path: Path) -> None:
    assert names(tmp_path, "project(x)") == [""]


def test_the_heading_of_a_table_states_no_values(tmp_path: Path) -> None:
    # It gave the scenarios "Thread", "Block", "Count" and "Task".
    heading = "| SCENARIO_NUM | Thread Block Count | Task Duration(us) |"
    table = f"\n{heading}\n|:---|---|---:|\n| 1 | 64 | 2 |\n"
    assert names(tmp_path, "project(x)", README + table) == [""]


def test_the_architecture_is_no_scenario(tmp_path: Path) -> None:
    cmake = 'if(NOT CMAKE_ASC_ARCHITECTURES MATCHES "^dav-(2201|3510)$")'
    assert names(tmp_path, cmake) == [""]


def test_two_options_are_combined(tmp_path: Path) -> None:
    readme = README.replace("-DSCENARIO", "-DTO=UB -DSCENARIO")
    cmake = (
        'if(NOT SCENARIO_NUM MATCHES "^[12]$")\nif(NOT TO STREQUAL "UB" AND NOT TO STREQUAL "L1")'
    )
    assert names(tmp_path, cmake, readme) == [
        "TO=UB SCENARIO_NUM=1",
        "TO=UB SCENARIO_NUM=2",
        "TO=L1 SCENARIO_NUM=1",
        "TO=L1 SCENARIO_NUM=2",
    ]


def test_a_value_of_our_own_is_marked_as_derived(tmp_path: Path) -> None:
    names(tmp_path, 'if(NOT SCENARIO_NUM MATCHES "^[1-2]$")')
    first, second = scenarios_of(tmp_path, find_recipes(tmp_path))
    assert (first.derived, second.derived) == ((), ("SCENARIO_NUM",))
