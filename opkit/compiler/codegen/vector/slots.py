"""The slots of a vector kernel's buffers, and which value lies in which of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .steps import Program, Value

__all__ = ["ONE_CAPACITY", "ROW_CAPACITY", "SLOT_GAP", "Lifetime", "Place", "Plan"]

ROW_CAPACITY = 256
"""Elements of a buffer with one value a row."""
SLOT_GAP = 256
"""Bytes between slots: two that an instruction reads lie in different groups of banks then."""
ONE_CAPACITY = 64
"""Elements of a buffer with a single value: what one repeat covers."""
SELECT_SCRATCH_BYTES = 8192
"""The last bytes of UB, which Select by a mask takes. Source: Select, constraints; docs/check.md,
MEM-SCRATCH"""


@dataclass(frozen=True)
class Place:
    """A slot of one of the kernel's buffers."""

    area: str
    """`scratch`, `mask`, `row`, `column`, `one`; `input` and `output` are parts of the queues."""
    index: int


@dataclass(frozen=True)
class Lifetime:
    """How long a slot holds a value: from the step that writes it to the last that reads it."""

    section: int
    value: Value
    place: Place
    first: int
    last: int
    waits_for: int
    """The step whose reads end before this value is written; -1 for a slot that was never used."""


@dataclass(frozen=True)
class Plan:
    """A program with a place for every value."""

    program: Program
    places: Mapping[int, Place]
    counts: Mapping[str, int]
    """Slots of each area."""
    lifetimes: tuple[Lifetime, ...]
    input_bytes: tuple[tuple[str, int], ...]
    """The tile tensors that share a buffer of the input queue, and bytes an element."""
    output_bytes: tuple[tuple[str, int], ...]
    row_inputs: tuple[str, ...]
    row_outputs: tuple[str, ...]
    constants: frozenset[int] = frozenset()
    """Values that are one known number: their slots are filled once, before the first tile."""
    buffers: int = 2
    """Buffers of each queue: two let a tile be copied while another is computed."""
    is_shifted: bool = False
    """The first slot begins in another group of banks than the queues' buffers."""

    def moved_bytes(self, times: int = 1) -> Any:
        """Return the bytes that an element of all tiles takes in memory, so many times."""
        return times * sum(size for _, size in (*self.input_bytes, *self.output_bytes))

    def least_bytes(self) -> Any:
        """Return the bytes of an element of the narrowest type."""
        return min((size for _, size in (*self.input_bytes, *self.output_bytes)), default=4)

    def bytes_per_element(self) -> Any:
        """Return the unified buffer that each element of a tile takes; one byte at least."""
        masks = self.counts.get("mask", 0) / 8
        kept = 4 * self.counts.get("scratch", 0) + (masks if masks % 1 else int(masks))
        total = self.moved_bytes(self.buffers) + kept
        return max(total, 1) if isinstance(total, int | float) else total

    @property
    def reduces_rows(self) -> bool:
        """Whether reductions need room for their intermediate results."""
        steps = (step for section in self.program.sections for step in section.steps)
        return any(step.operation in ("Reduce", "Fold") for step in steps)

    @property
    def selects(self) -> bool:
        """Whether an instruction needs the end of UB as scratch."""
        steps = (step for section in self.program.sections for step in section.steps)
        return any(step.operation in ("Select", "Selects") for step in steps)

    @property
    def spreads_rows(self) -> bool:
        """Whether numbers of rows are spread over blocks of 32 bytes."""
        steps = (step for section in self.program.sections for step in section.steps)
        return any(step.operation == "Reduce" or step.operation.endswith("Row") for step in steps)

    def fixed_bytes(self) -> int:
        """Return what does not grow with the tile; columns apart."""
        total = self.buffers * 4 * ROW_CAPACITY * (len(self.row_inputs) + len(self.row_outputs))
        total += 4 * ROW_CAPACITY * self.counts.get("row", 0)
        total += 4 * ONE_CAPACITY * self.counts.get("one", 0)
        # The room of numbers that are spread over blocks is there in any case: where nothing takes
        # it, it is what Select needs at the end.
        blocks = 4 * 8 * ROW_CAPACITY
        ends = (blocks if self.spreads_rows else 0) + (SELECT_SCRATCH_BYTES if self.selects else 0)
        total += max(blocks, ends)
        return total + SLOT_GAP * (self.counts.get("scratch", 0) + 8) + 1024

    def __str__(self) -> str:
        lines = [f"{area}: {count} slots" for area, count in sorted(self.counts.items()) if count]
        for each in self.lifetimes:
            edge = f", after step {each.waits_for}" if each.waits_for >= 0 else ""
            lines.append(
                f"{each.place.area}{each.place.index} = {each.value}:"
                f" section {each.section}, steps {each.first}..{each.last}{edge}"
            )
        return "\n".join(lines)
