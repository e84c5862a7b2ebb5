"""The scenarios of a sample: the values that its CMake options may take."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from opkit.compat.recipe import READMES, Recipe
from opkit.compat.texts import read_text

__all__ = ["Scenario", "scenarios_of"]

_MOST_VALUES = 64
_MOST_SCENARIOS = 128
_RULE = re.compile(r"^\s*\|?[\s:|-]*-{3}[\s:|-]*$")
_RANGE = re.compile(r"^(\d+)\s*(?:-|~|to|\.\.)\s*(\d+)$")


@dataclass(frozen=True)
class Scenario:
    """One way to build and run a sample."""

    name: str
    """Such as `SCENARIO_NUM=2`; empty where there is but one."""
    recipe: Recipe
    derived: tuple[str, ...] = ()
    """The options whose values are not the ones that the recipe itself names."""


def scenarios_of(folder: Path, recipes: tuple[Recipe, ...]) -> tuple[Scenario, ...]:
    """Return every scenario of a sample, those that its README spells out first."""
    cmake = read_text(folder / "CMakeLists.txt")
    readme = "\n".join(read_text(folder / name) for name in READMES)
    found: dict[Recipe, Scenario] = {}
    base = recipes[0].configure_values()
    for index, recipe in enumerate(recipes):
        own = recipe.configure_values()
        options = {name: _values(name, cmake, readme) for name in _options(own, cmake)}
        varied = {name: values for name, values in options.items() if len(values) > 1}
        several = len(recipes) > 1 or any(varied.values())
        for changes in _product(varied):
            changed = {name: value for name, value in changes.items() if own.get(name) != value}
            result = recipe.with_values(changed)
            named = changes or {
                name: value for name, value in own.items() if base.get(name) != value
            }
            name = _name_of(named, index) if several else ""
            found.setdefault(result, Scenario(name, result, tuple(changed)))
    return tuple(found.values())[:_MOST_SCENARIOS]


def _name_of(values: Mapping[str, str], index: int) -> str:
    text = " ".join(
        f"{name}={value}" for name, value in values.items() if not name.startswith("CMAKE_")
    )
    return text or ("" if index == 0 else f"recipe {index + 1}")


def _options(own: Mapping[str, str], cmake: str) -> list[str]:
    """Return the options to vary: those that the recipe sets, and the one that names scenarios."""
    set_by_recipe = [name for name in own if not name.startswith("CMAKE_")]
    declared = re.findall(r"\bset\s*\(\s*(\w+)\s+[^)]*\bCACHE\b", cmake)
    asked = [name for name in declared if name.upper().startswith("SCENARIO")]
    return list(dict.fromkeys([*set_by_recipe, *asked]))


def _values(name: str, cmake: str, readme: str) -> tuple[str, ...]:
    """Return the values that an option may take, as the sample states them; empty if nowhere."""
    for values in (
        _from_patterns(name, cmake),
        _from_list(name, cmake),
        _from_strings(name, cmake),
        _from_comparisons(name, cmake),
        _from_table(name, readme),
        _from_description(name, cmake),
    ):
        if len(values) > 1:
            return tuple(values)
    return ()


def _from_patterns(name: str, cmake: str) -> list[str]:
    """if(NOT X MATCHES "^[1-4]$")"""
    patterns = re.findall(rf"\bNOT\s+{name}\s+MATCHES\s+\"([^\"]+)\"", cmake)
    found: dict[str, None] = {}
    for pattern in patterns:
        try:
            test = re.compile(pattern)
        except re.error:
            continue
        numbers = [str(number) for number in range(_MOST_VALUES)]
        words = re.findall(r"\w+", pattern) if not any(map(test.search, numbers)) else []
        found |= dict.fromkeys(value for value in [*numbers, *words] if test.search(value))
    # A pattern that takes everything says nothing.
    return [] if len(found) >= _MOST_VALUES else list(found)


def _from_list(name: str, cmake: str) -> list[str]:
    """set(VALID 1 2 3) with if(NOT X IN_LIST VALID)"""
    asked = re.search(rf"\b{name}\s+IN_LIST\s+(\w+)", cmake)
    if asked is None:
        return []
    given = re.search(rf"\bset\s*\(\s*{asked[1]}\s+([^)]*)\)", cmake)
    return re.findall(r"[\w.-]+", given[1]) if given else []


def _from_strings(name: str, cmake: str) -> list[str]:
    """set_property(CACHE X PROPERTY STRINGS a b)"""
    given = re.search(rf"\bCACHE\s+{name}\s+PROPERTY\s+STRINGS\s+([^)]*)\)", cmake)
    return re.findall(r"[\w.-]+", given[1]) if given else []


def _from_comparisons(name: str, cmake: str) -> list[str]:
    """if(NOT X STREQUAL "UB" AND NOT X STREQUAL "L1")"""
    tested = re.findall(rf"\bNOT\s+\"?\$?\{{?{name}\}}?\"?\s+(?:STREQUAL|EQUAL)\s+\"?(\w+)", cmake)
    return list(dict.fromkeys(tested))


def _from_table(name: str, readme: str) -> list[str]:
    """| `X` | `1` (default), `2`, `3` | ... |"""
    lines = readme.splitlines()
    for line, below in zip(lines, [*lines[1:], ""], strict=True):
        # A table's heading names columns: "| X | Task Duration |" gives no values.
        if _RULE.match(below):
            continue
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if len(cells) < 2 or cells[0].strip("`* ") != name:
            continue
        for cell in cells[1:]:
            values = _list_of(cell)
            if len(values) > 1:
                return values
    return []


def _from_description(name: str, cmake: str) -> list[str]:
    """set(X 1 CACHE STRING "Scenario number (1-4)")"""
    given = re.search(rf"\bset\s*\(\s*{name}\s+\S+\s+CACHE\s+STRING\s+\"([^\"]*)\"", cmake)
    if given is None:
        return []
    text = given[1]
    inner = re.search(r"\(([^()]*)\)", text)
    for part in ([inner[1]] if inner else []) + [text.rpartition(":")[2], text]:
        # "Scenario 0,1,2": the list is what stands at the end.
        tail = re.search(r"(\d+(?:\s*(?:,|-|~|/|or|to|and)\s*\d+)+)\s*$", part)
        values = _list_of(tail[1] if tail else part)
        if len(values) > 1:
            return values
    return []


def _list_of(text: str) -> list[str]:
    """Return the values of a list such as `1`-`4`, "1, 2 or 3"; empty if it is something else."""
    plain = re.sub(r"[（(][^）)]*[）)]", "", text).replace("`", "").replace("\u3000", " ").strip()
    whole = _RANGE.match(plain)
    if whole:
        return [str(number) for number in range(int(whole[1]), int(whole[2]) + 1)]
    parts = [part for part in re.split(r"\s*(?:[,、，/;]|\bor\b|\band\b)\s*|\s+", plain) if part]
    values: list[str] = []
    for part in parts:
        span = _RANGE.match(part)
        if span:
            values += [str(number) for number in range(int(span[1]), int(span[2]) + 1)]
        elif re.match(r"^[A-Za-z0-9_]+$", part):
            values.append(part)
        else:
            return []
    return list(dict.fromkeys(values)) if len(values) <= _MOST_VALUES else []


def _product(options: Mapping[str, tuple[str, ...]]) -> list[dict[str, str]]:
    return [
        dict(zip(options, values, strict=True)) for values in itertools.product(*options.values())
    ]
