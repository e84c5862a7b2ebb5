"""A project's own precision limits: `[tool.opkit.precision]` of its pyproject.toml.

[tool.opkit.precision]                  # for every operator
standard = "mixed"

[tool.opkit.precision.gelu_custom]      # for one
standard = "ecosystem"
float16 = { T = 0.002 }                 # numbers of the standard
numbers_of = "hifloat32"                # float32 is judged by another format's numbers
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from opkit.errors import UsageError
from opkit.schema import OpSpec, nearest
from opkit.testing.numbers import Standard, double_level, find_standard

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib  # type: ignore[import-not-found, unused-ignore]

__all__ = ["operator_standards", "standard_for"]

DEFAULT = "conditioned"


def standard_for(name: str, kernel: str) -> Standard:
    """Return a standard by name; `double` is the level that an operator's name is held to."""
    return find_standard(double_level(kernel) if name == "double" else name)


def operator_standards(
    root: Path, specs: Sequence[OpSpec], *, standard: str | None = None
) -> dict[str, Standard]:
    """Return the standard of each operator, by its snake_case name.

    Args:
        root: the project's folder, whose pyproject.toml may say something.
        standard: what the user asked for now, which wins; its numbers stay the project's where the
            project has numbers for this standard.
    Raises:
        UsageError: no such standard, operator or number.
    """
    path = root / "pyproject.toml"
    table = _precision_table(path)
    names = [spec.name for spec in specs]
    for key, value in table.items():
        if isinstance(value, dict) and key not in names:
            near = nearest(key, names)
            raise UsageError(
                f'{path}: [tool.opkit.precision.{key}]: there is no operator "{key}"',
                help=f'did you mean "{near}"?' if near else "one of " + ", ".join(names),
            )
    result = {}
    for spec in specs:
        own = table.get(spec.name)
        row: dict[str, object] = {k: v for k, v in table.items() if not isinstance(v, dict)}
        row.update(own if isinstance(own, dict) else {})
        result[spec.name] = _resolve(path, spec.name, row, standard)
    return result


def _precision_table(path: Path) -> Mapping[str, object]:
    if not path.is_file():
        return {}
    document = tomllib.loads(path.read_text(encoding="utf-8"))
    table = document.get("tool", {}).get("opkit", {}).get("precision", {})
    if not isinstance(table, dict):
        raise UsageError(f"{path}: [tool.opkit] precision is {table!r}, expected a table")
    return table


def _resolve(path: Path, kernel: str, row: dict[str, object], asked: str | None) -> Standard:
    where = f"{path}: precision of {kernel}"
    own = row.pop("standard", DEFAULT)
    if not isinstance(own, str):
        raise UsageError(f"{where}: standard is {own!r}, expected a name")
    found = standard_for(asked or own, kernel)
    numbers_of = row.pop("numbers_of", None)
    usual = standard_for(own, kernel)
    if (found.base or found.name) != (usual.base or usual.name):
        return found
    if numbers_of is not None:
        if numbers_of not in found.numbers:
            known = ", ".join(found.numbers)
            raise UsageError(f'{where}: numbers_of is "{numbers_of}"', help=f"one of {known}")
        found = found.with_numbers({"float32": found.numbers[str(numbers_of)]})
    changes: dict[str, dict[str, float]] = {}
    for dtype, numbers in row.items():
        if not isinstance(numbers, dict):
            raise UsageError(f"{where}: {dtype} is {numbers!r}, expected a table of numbers")
        for key, value in numbers.items():
            if not isinstance(value, (int, float)) or isinstance(value, bool):
                raise UsageError(f"{where}: {dtype}.{key} is {value!r}, expected a number")
        changes[dtype] = numbers
    return found.with_numbers(changes) if changes else found
