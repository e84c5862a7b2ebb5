"""What the vector unit does for one tile, instruction by instruction, before it has addresses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from ...ir import Location, Tensor
from ...passes import Domain, Space

__all__ = ["Derived", "Field", "Number", "Operand", "Program", "Scalar", "Section", "Step", "Value"]


@dataclass(frozen=True)
class Value:
    """What one step computes."""

    number: int
    space: Space
    kind: str
    """`float32`, `int32`, `mask` (a bit an element), or the type in memory: `float16`, `uint8`,
    ..."""

    def __str__(self) -> str:
        return f"%{self.number}:{self.space}.{self.kind}"


@dataclass(frozen=True)
class Number:
    """A number that is known now."""

    value: float | int

    def __str__(self) -> str:
        return repr(self.value)


@dataclass(frozen=True)
class Field:
    """A number that the host computes for each launch: a scalar tensor of the graph."""

    tensor: str
    is_integer: bool = False

    def __str__(self) -> str:
        return f"${self.tensor}"


@dataclass(frozen=True)
class Scalar:
    """A value of space `one`, read by the scalar unit."""

    value: Value

    def __str__(self) -> str:
        return f"scalar {self.value}"


@dataclass(frozen=True)
class Derived:
    """A number that the scalar unit makes of another: its negative, `-`, or its inverse, `1/`."""

    operand: Field | Scalar
    how: str

    def __str__(self) -> str:
        return f"{self.how}{self.operand}"


Operand: TypeAlias = Value | Number | Field | Scalar | Derived


@dataclass(frozen=True)
class Step:
    """One instruction, or one short sequence that has a name of its own in the kernel."""

    operation: str
    target: Value
    sources: tuple[Operand, ...] = ()
    mode: str = ""
    """Rounding or comparison mode; for Load the tensor."""
    location: Location | None = field(default=None, compare=False)

    @property
    def spaces(self) -> frozenset[Space]:
        """What its result and its sources vary along."""
        values = (self.target, *(s for s in self.sources if isinstance(s, Value)))
        return frozenset(value.space for value in values)

    def __str__(self) -> str:
        arguments = ", ".join(str(source) for source in self.sources)
        mode = f" {self.mode}" if self.mode else ""
        return f"{self.target} = {self.operation}{mode}({arguments})"


@dataclass(frozen=True)
class Section:
    """Steps that run together: `prepare`, once for what does not change from tile to tile;
    `tile`; `finish`, once a
    row where a row comes in parts."""

    name: str
    steps: tuple[Step, ...]


@dataclass(frozen=True)
class Program:
    """A fused vector kernel in instructions."""

    schedule: str
    """`rows`: whole rows, several a tile; `parts`: a tile is a part of one row; `down`: a part of
    the columns, from top to bottom; `blocks`: blocks of both that cube cores hand over."""
    domain: Domain
    sections: tuple[Section, ...]
    inputs: tuple[Tensor, ...]
    outputs: tuple[tuple[Tensor, Value], ...]
    one_row: frozenset[str] = frozenset()
    """Inputs of which a launch may give one row for all."""

    @property
    def passes(self) -> Sequence[Section]:
        """The sections that run once a tile."""
        return [section for section in self.sections if section.name == "tile"]

    def __str__(self) -> str:
        lines = [f"schedule {self.schedule}, extents {list(map(str, self.domain.extents))}"]
        for section in self.sections:
            lines.append(f"{section.name}:")
            lines += [f"    {step}" for step in section.steps]
        lines += [f"store {tensor.name} = {value}" for tensor, value in self.outputs]
        return "\n".join(lines)
