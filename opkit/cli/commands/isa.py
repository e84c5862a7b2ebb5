"""`opkit isa`: the instructions that the emulator has."""

from __future__ import annotations

from dataclasses import dataclass

import click

from opkit.chips import all_chips
from opkit.cli.console import Console, common_options
from opkit.dtypes import DTYPES
from opkit.errors import UsageError

__all__ = ["command"]


@dataclass(frozen=True)
class Row:
    """One row of the instruction table."""

    name: str
    family: str
    dtypes: dict[str, tuple[str, ...]]
    """Element types by architecture, such as `dav-2201`; empty where the chip lacks the row."""
    cost: str
    """The cost class that the timing model charges by."""
    semantics: str


@click.command("isa", short_help="List the instructions that the emulator has.")
@click.argument("name", required=False)
@click.option("--missing", is_flag=True, help="List what the public API has and opkit has not.")
@common_options
def command(*, name: str | None, missing: bool, console: Console) -> None:
    """List the instructions that the emulator has.

    With NAME, show that instruction: what it does, its element types on each chip, and the cost
    class that "opkit profile" charges it by.

    Example: opkit isa Exp
    """
    if missing:
        _show_missing(name, console)
        return
    rows = _table()
    if name is not None:
        _show(_find(rows, name), console)
        return
    if console.json:
        console.emit_json(rows)
        return
    arches = _arches()
    shown = [
        (row.name, row.family, *(_types(row, arch) for arch in arches), row.cost) for row in rows
    ]
    columns = ("instruction", "family", *(f"{_chips(arch)}" for arch in arches), "cost")
    console.table(columns, shown)
    console.result(f"\n{len(rows)} instructions")


def _show_missing(name: str | None, console: Console) -> None:
    """Compare the list of public names with what the headers declare."""
    if name is not None:
        raise UsageError(
            "--missing lists names, and takes none", help="leave out NAME, or --missing"
        )
    from opkit.compat import api_names, read_declared, read_refused

    names = api_names()
    lacking = read_declared().missing(names)
    listed = {name.identifier for name in names}
    unlisted = [name for name in read_refused() if name not in listed]
    if console.json:
        found = [
            {"name": name.text, "class": name.kind, "tier": name.tier, "kernels": name.kernels}
            for name in lacking
        ]
        console.emit_json({"names": len(names), "missing": found, "unlisted": unlisted})
        return
    groups: dict[str, list[str]] = {}
    for entry in sorted(lacking, key=lambda entry: -entry.kernels):
        groups.setdefault(entry.kind, []).append(f"{entry.text} {entry.kernels}")
    for kind in sorted(groups):
        console.result(f"{kind}\n    {', '.join(groups[kind])}")
    console.result(
        f"\n{len(names) - len(lacking)} of {len(names)} public names are declared;"
        " beside a missing one stands how many of 694 public kernels use it"
    )
    for tier in sorted({entry.tier for entry in names}):
        total = sum(entry.tier == tier for entry in names)
        gone = sum(entry.tier == tier for entry in lacking)
        console.result(f"{tier}: {total - gone} of {total}")
    console.result(f"\nalso missing, outside that list of names\n    {', '.join(unlisted)}")


def _table() -> tuple[Row, ...]:
    from opkit import runtime

    runtime.load_emulator()
    import opkit.emulator._emulator as emulator

    names = {dtype.code: dtype.name for dtype in DTYPES}
    return tuple(
        Row(
            name=row["name"],
            family=row["family"],
            dtypes={
                arch: tuple(names.get(code, code.lower()) for code in codes)
                for arch, codes in row["dtypes"].items()
            },
            cost=row["cost"],
            semantics=row["semantics"],
        )
        for row in emulator.isa_table()
    )


def _find(rows: tuple[Row, ...], name: str) -> Row:
    from opkit.schema import nearest

    for row in rows:
        if row.name.lower() == name.lower():
            return row
    near = nearest(name, [row.name for row in rows])
    raise UsageError(
        f'the emulator has no instruction "{name}"',
        help=f'did you mean "{near}"?' if near else '"opkit isa" lists them',
    )


def _show(row: Row, console: Console) -> None:
    if console.json:
        console.emit_json(row)
        return
    console.result(f"{row.name}  {row.semantics}")
    facts = [("family", row.family)]
    facts += [(_chips(arch), _types(row, arch)) for arch in _arches()]
    facts += [("cost class", row.cost), *_costs(row)]
    width = max(len(key) for key, _ in facts)
    for key, value in facts:
        console.result(f"  {key:<{width}}  {value}")


def _costs(row: Row) -> list[tuple[str, str]]:
    """Return the cycles a repeat that the default chip charges, most specific first."""
    chip = all_chips()[0]
    stems = (f"timing.op.{row.name}.", f"timing.cost.{row.cost}.")
    found = {
        key.removeprefix(stem): number
        for stem in reversed(stems)
        for key, number in chip.numbers.items()
        if key.startswith(stem)
    }
    return [
        (f"{chip.name}, {dtype}", f"{number.value:g} cycles a repeat  ({number.source})")
        for dtype, number in sorted(found.items(), key=lambda item: item[0] == "any")
    ]


def _arches() -> tuple[str, ...]:
    return tuple(dict.fromkeys(chip.npu_arch for chip in all_chips()))


def _chips(arch: str) -> str:
    return ", ".join(chip.name for chip in all_chips() if chip.npu_arch == arch)


def _types(row: Row, arch: str) -> str:
    types = row.dtypes.get(arch, ())
    if len(types) >= len(DTYPES):
        return "any"
    return " ".join(types) or "-"
