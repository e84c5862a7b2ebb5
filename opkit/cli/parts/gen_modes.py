"""What `opkit gen` does besides writing a new project: adding to one, checking, reading back."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from opkit.errors import SpecError, UsageError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib  # type: ignore[import-not-found, unused-ignore]

if TYPE_CHECKING:
    from opkit.cli.console import Console
    from opkit.schema import OpSpec

__all__ = [
    "Existing",
    "check_prototype",
    "enclosing_project",
    "find_existing",
    "merged_prototype",
    "print_prototype",
    "require_existing",
]


@dataclass(frozen=True)
class Existing:
    """The generated project that lies in a folder."""

    name: str
    framework: str | None
    compute_units: tuple[str, ...]
    """As it was generated; empty where the project is of an older opkit."""


def find_existing(folder: Path) -> Existing | None:
    """Return the project that an earlier `opkit gen` wrote into a folder, None where there is none.

    Raises:
        UsageError: its pyproject.toml cannot be read.
    """
    settings = folder / "pyproject.toml"
    if not settings.is_file():
        return None
    try:
        document = tomllib.loads(settings.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as err:
        raise UsageError(f"{settings}: cannot be read: {err}") from err
    table = document.get("tool", {}).get("opkit")
    name = document.get("project", {}).get("name")
    if not isinstance(table, dict) or not isinstance(name, str):
        return None
    units = table.get("compute_units", [])
    return Existing(name, table.get("framework"), tuple(str(unit) for unit in units))


def enclosing_project(start: Path) -> Path | None:
    """Return the folder of the generated project that a folder is or lies in, None outside of one.

    Raises:
        UsageError: a pyproject.toml on the way cannot be read.
    """
    for folder in (start, *start.parents):
        existing = find_existing(folder)
        if existing is not None and (folder / f"{existing.name}.json").is_file():
            return folder
    return None


def require_existing(folder: Path) -> Existing:
    """Return the project in a folder that `enclosing_project` found."""
    existing = find_existing(folder)
    if existing is None:
        raise UsageError(f"{folder} holds no project any more")
    return existing


def merged_prototype(
    folder: Path, existing: Existing, specs: Sequence[OpSpec]
) -> tuple[tuple[OpSpec, ...], str]:
    """Return the operators of a project with others added, and the text of its prototype.

    An operator that the project has already is described anew by the one that is added.

    Raises:
        SpecError: the project's prototype is wrong, or two operators clash.
    """
    from opkit import schema

    file = folder / f"{existing.name}.json"
    entries = schema.prototype_entries(file)
    new = [json.loads(schema.dump(spec)) for spec in specs]
    by_op = {entry["op"]: entry for entry in new}
    kept = [by_op.pop(str(entry["op"]), entry) for entry in entries]
    text = json.dumps([*kept, *by_op.values()], indent=4, ensure_ascii=False) + "\n"
    return schema.parse(text, file=file), text


def check_prototype(prototype: Path, console: Console) -> None:
    """Print what is wrong or worth knowing of a prototype; nothing is written.

    Raises:
        SpecError, UsageError: it is wrong.
    """
    from opkit import schema
    from opkit.scaffold import render

    specs = schema.load(prototype)
    try:
        files = render(specs, name="checked", framework=_framework(specs))
        gaps = operator_notes(specs)
    except SpecError as err:
        raise schema.with_line(err) from err
    found = []
    for spec in specs:
        notes = list(_notes(spec))
        notes += [
            gap.removeprefix(f"{spec.op}: ") for gap in gaps if gap.startswith(f"{spec.op}: ")
        ]
        found.append({"op": spec.op, "name": spec.name, "notes": notes})
        console.status("ok", f"{spec.op}: {_summary(spec)}", tone="good")
        for note in notes:
            console.status("note", f"{spec.op}: {note}", tone="warn")
    if console.json:
        console.emit_json({"prototype": prototype, "operators": found, "files": len(files)})
        return
    console.result(f"{prototype} is a valid prototype of {_count(len(specs), 'operator')}")


def operator_notes(specs: Sequence[OpSpec]) -> tuple[str, ...]:
    """Return a line for each input of each operator that is taken as another type, or that no
    backward operator covers."""
    from opkit.scaffold import gradient_gaps, own_gradients

    own = own_gradients(specs)
    narrowed = tuple(
        f"{spec.op}: {tensor.name} is int64: taken as int32, and values that this does not hold"
        " are refused"
        for spec in specs
        if spec.is_program
        for tensor in spec.inputs
        if any(dtype.name == "int64" for dtype in tensor.dtypes)
    )
    return narrowed + tuple(
        f"{spec.op}: no gradient for {gap.input}: {gap.reason}"
        for spec in specs
        if spec not in own.values()
        for gap in gradient_gaps(spec, own)
    )


def print_prototype(source: Path, target: Path | None, console: Console, *, chip: str) -> None:
    """Write the prototype of the operators that a host source defines, to a file or stdout.

    Raises:
        BuildError: the source does not compile.
        UsageError: it defines no operator, or the file exists or cannot be written.
    """
    from opkit import schema
    from opkit.cli.console import write_text
    from opkit.toolchain import read_opdefs

    specs, notes = read_opdefs(source, chip=chip)
    for note in notes:
        console.warn(note)
    text = schema.dump(specs if len(specs) > 1 else specs[0])
    if target is None:
        console.result(text.rstrip("\n"))
        return
    if target.exists():
        raise UsageError(
            f"{target} exists already", help="name another file, or move this one out of the way"
        )
    write_text(target, text)
    console.status("create", str(target), tone="good")
    if console.json:
        console.emit_json({"prototype": target, "operators": [spec.op for spec in specs]})


def _framework(specs: Sequence[OpSpec]) -> str:
    """Return pytorch where torch has a combination of each operator's types."""
    for spec in specs:
        rows = [spec.variant_dtypes(index) for index in range(spec.variant_count)]
        if not any(all(dtype.torch is not None for dtype in row) for row in rows):
            return "aclnn"
    return "pytorch"


def _notes(spec: OpSpec) -> Sequence[str]:
    notes = []
    if not all(tensor.formula for tensor in spec.outputs):
        notes.append("no formula: the kernel's Compute is yours to write")
        if spec.outputs[0].shape is None and len(spec.inputs) > 1:
            notes.append("no `shape`: inputs count as of one shape, and outputs have it too")
    columns = [(spec.variant_dtypes(i), _formats(spec, i)) for i in range(spec.variant_count)]
    if len(set(columns)) < len(columns):
        notes.append("a combination of types and formats is listed twice")
    if _framework([spec]) == "aclnn":
        notes.append("torch has none of its types: generate with -f aclnn")
    for attr in spec.attrs:
        if attr.required and attr.default is not None:
            notes.append(f"{attr.name} is required, so OpDef does not get its default_value")
    return notes


def _formats(spec: OpSpec, index: int) -> tuple[str, ...]:
    return tuple(tensor.formats[index] for tensor in (*spec.inputs, *spec.outputs))


def _summary(spec: OpSpec) -> str:
    return ", ".join(
        [
            _count(len(spec.inputs), "input"),
            _count(len(spec.outputs), "output"),
            _count(len(spec.attrs), "attribute"),
            _count(spec.variant_count, "combination"),
        ]
    )


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
