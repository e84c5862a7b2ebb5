"""What callers of an operator see: its inputs and outputs, by name and data type."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from opkit.errors import UsageError

__all__ = ["Interface", "Parameter", "interface_of_manifest"]


@dataclass(frozen=True)
class Parameter:
    """One input or output."""

    name: str
    kind: str = "required"
    """`required`, `optional` or `dynamic`, as a prototype has it."""


@dataclass(frozen=True)
class Interface:
    """How one operator of one version is called."""

    op: str
    """Its OpDef name, or the program's."""
    kernel: str
    """Its snake_case name, which its reference has."""
    inputs: tuple[Parameter, ...]
    outputs: tuple[Parameter, ...]
    variants: tuple[tuple[str, ...], ...]
    """Data types of the inputs, then of the outputs, one row a combination."""
    chip: str
    shapes: tuple[tuple[int, ...], ...] = ()
    """Shapes of the inputs, then of the outputs, where every call has the same ones; else none."""

    def to_json(self) -> dict[str, Any]:
        """Return it as what `from_json` takes."""
        return asdict(self)

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Interface:
        """Return the interface that `to_json` gave."""
        return cls(
            value["op"],
            value["kernel"],
            tuple(Parameter(**item) for item in value["inputs"]),
            tuple(Parameter(**item) for item in value["outputs"]),
            tuple(tuple(row) for row in value["variants"]),
            value["chip"],
            # What an older opkit kept has none.
            tuple(tuple(shape) for shape in value.get("shapes", ())),
        )

    def output_dtypes(self, inputs: Sequence[str | None]) -> tuple[str, ...] | None:
        """Return the outputs' data types for those of the inputs; None stands for one left out."""
        count = len(self.inputs)
        for row in self.variants:
            pairs = zip(row[:count], inputs, strict=False)
            if len(inputs) <= count and all(given in (None, wanted) for wanted, given in pairs):
                return row[count:]
        return None

    def refuse_unless_alike(self, other: Interface, operator: str, label: str) -> None:
        """Raise UsageError unless calls of `other` are calls of this one too."""
        mine = (len(self.inputs), len(self.outputs))
        theirs = (len(other.inputs), len(other.outputs))
        if mine != theirs:
            raise UsageError(
                f"{operator}: {label} has {mine[0]} inputs and {mine[1]} outputs, and the versions"
                f" that are there have {theirs[0]} and {theirs[1]}",
                help="serve it as an operator of its own",
            )
        if self.shapes and other.shapes and self.shapes != other.shapes:
            raise UsageError(
                f"{operator}: {label} takes and returns {self.shapes_text}, and the versions that"
                f" are there {other.shapes_text}",
                help="serve it as an operator of its own",
            )

    @property
    def shapes_text(self) -> str:
        """The shapes as messages show them."""
        return " ".join(str(list(shape)) for shape in self.shapes)

    def shape_of(self, index: int) -> list[int]:
        """Return the shape of a tensor, outputs after inputs; [-1] where each call says its own."""
        return list(self.shapes[index]) if self.shapes else [-1]


def interface_of_manifest(manifest: Path, op: str | None) -> Interface:
    """Return the interface of an operator of an artifact folder.

    Raises:
        UsageError: it is no manifest of an artifact folder, or has no such operator.
    """
    try:
        document = json.loads(manifest.read_bytes())
        rows = list(document["operators"])
        chip = str(document["chip"])
        known = [(str(row["op"]), str(row["kernel"])) for row in rows]
    except (OSError, ValueError, KeyError, TypeError) as err:
        raise UsageError(
            f"{manifest}: no manifest of an artifact folder: {err!r}",
            help='run "opkit build" in the project',
        ) from err
    chosen = [i for i, names in enumerate(known) if op is None or op in names]
    if not chosen:
        names = ", ".join(name for name, _ in known)
        raise UsageError(f'{manifest}: there is no operator "{op}"', help=f"it has {names}")
    row = rows[chosen[0]]

    def parameters(key: str) -> tuple[Parameter, ...]:
        return tuple(Parameter(str(t["name"]), str(t["param_type"])) for t in row[key])

    variants = tuple(tuple(map(str, variant["dtypes"])) for variant in row["variants"])
    inputs, outputs = parameters("inputs"), parameters("outputs")
    return Interface(*known[chosen[0]], inputs, outputs, tuple(dict.fromkeys(variants)), chip)
