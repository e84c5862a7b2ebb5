"""Checked access to the entries of a file of cases: errors say file, place, value, next step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from opkit.dtypes import DType, dtype_names, find_tensor_dtype
from opkit.errors import UsageError
from opkit.schema import AttrValue, OpSpec, nearest
from opkit.testing.cases.values import Source, check_distribution

__all__ = ["Entry", "attr_value", "read_document"]


def read_document(path: Path) -> object:
    """Return what a YAML or JSON file holds.

    Raises:
        UsageError: it cannot be read or is neither.
    """
    try:
        # JSON is YAML as far as the two matter here, so one reader and its line numbers do.
        return yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: cannot be read: {error}") from error
    except yaml.YAMLError as error:
        raise UsageError(f"{path}: not YAML or JSON: {error}") from error


@dataclass(frozen=True)
class Entry:
    """One mapping of the file, and where it stands."""

    path: Path
    where: str
    """Such as `cases[3]`."""
    fields: Mapping[str, object]

    @classmethod
    def of(cls, path: Path, where: str, value: object) -> Entry:
        """Return a value as an entry; it must be a mapping."""
        if not isinstance(value, Mapping):
            raise UsageError(f"{path}: {where}: expected a mapping of fields, found {value!r}")
        return cls(path, where, value)

    def fail(self, text: str, help: str | None = None) -> UsageError:
        """Return the error for this entry."""
        return UsageError(f"{self.path}: {self.where}: {text}", help=help)

    def only(self, known: Sequence[str]) -> None:
        """Refuse fields that are not among the known ones."""
        for key in self.fields:
            if key not in known:
                near = nearest(str(key), known)
                suggestion = f'did you mean "{near}"?' if near else "one of " + ", ".join(known)
                raise self.fail(f'there is no field "{key}"', suggestion)

    def text(self, key: str, default: str = "") -> str:
        """Return a string field."""
        value = self.fields.get(key, default)
        if not isinstance(value, str):
            raise self.fail(f"{key} is {value!r}, expected text")
        return value

    def shape(self, key: str, value: object) -> tuple[int, ...]:
        """Return a value as a shape."""
        if isinstance(value, int) and not isinstance(value, bool):
            value = [value]
        if not isinstance(value, Sequence) or isinstance(value, str):
            raise self.fail(f"{key} is {value!r}, expected a list of sizes such as [2, 1023]")
        for size in value:
            if not isinstance(size, int) or isinstance(size, bool) or size < 0:
                raise self.fail(f"{key} has the size {size!r}, expected a whole number from 0")
        return tuple(value)

    def dtype(self, value: object) -> DType:
        """Return a value as a data type."""
        found = find_tensor_dtype(value) if isinstance(value, str) else None
        if found is None:
            near = nearest(str(value), dtype_names())
            raise self.fail(
                f'"{value}" is not a data type',
                f'did you mean "{near}"?' if near else "one of " + ", ".join(dtype_names()),
            )
        return found

    def bounds(self, value: object) -> tuple[float | None, float | None]:
        """Return a value as [smallest, largest]; (None, None) where there is none."""
        if value is None:
            return None, None
        if not isinstance(value, Sequence) or len(value) != 2:
            raise self.fail(f"range is {value!r}, expected [smallest, largest]")
        low, high = self.number(value[0]), self.number(value[1])
        if low > high:
            raise self.fail(f"range is [{low:g}, {high:g}]: the first is the larger one")
        return low, high

    def number(self, value: object) -> float:
        """Return a value as a number; YAML takes 1e-5 for text."""
        try:
            return float(value)  # type: ignore[arg-type]
        except (TypeError, ValueError) as error:
            raise self.fail(f"{value!r} is not a number") from error

    def source(self, distribution: str, bounds: object, values: object) -> Source:
        """Return where an input's values come from: numbers or a file before a distribution."""
        low, high = self.bounds(bounds)
        name = check_distribution(distribution, f"{self.path}: {self.where}")
        if isinstance(values, str):
            return Source(name, low, high, file=(self.path.parent / values).resolve())
        if values is None:
            return Source(name, low, high)
        return Source(name, low, high, values=tuple(self.number(v) for v in _flat(values)))

    def spec(self, specs: Sequence[OpSpec], op: str) -> OpSpec:
        """Return the operator of that name; the only one where no name is given."""
        if not op and len(specs) == 1:
            return specs[0]
        for spec in specs:
            if op in (spec.op, spec.name):
                return spec
        names = [spec.name for spec in specs]
        if not op:
            raise self.fail("which operator? Give its op", "one of " + ", ".join(names))
        near = nearest(op, [*names, *(spec.op for spec in specs)])
        raise self.fail(
            f'there is no operator "{op}"',
            f'did you mean "{near}"?' if near else "one of " + ", ".join(names),
        )


def _flat(values: object) -> list[object]:
    if isinstance(values, Sequence) and not isinstance(values, str):
        return [item for value in values for item in _flat(value)]
    return [values]


def attr_value(entry: Entry, kind: str, value: object) -> AttrValue:
    """Return a value as an attribute of that prototype type."""
    if kind == "float":
        return entry.number(value)
    if kind == "list_float" and isinstance(value, list):
        return tuple(entry.number(item) for item in value)
    expected = {"int": int, "bool": bool, "string": str, "str": str}.get(kind.removeprefix("list_"))
    items = value if kind.startswith("list_") and isinstance(value, list) else [value]
    for item in items:
        right = expected is not None and isinstance(item, expected)
        if not right or (expected is int and isinstance(item, bool)):
            raise entry.fail(f"an attribute of type {kind} cannot be {value!r}")
    if kind.startswith("list_"):
        return tuple(items)
    return value  # type: ignore[return-value]
