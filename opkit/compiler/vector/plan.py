"""Where each value of a vector kernel lies in the unified buffer, and for how long."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from opkit.dtypes import find_dtype

from .lines import passing_rows
from .steps import Derived, Number, Operand, Program, Scalar, Section, Step, Value

__all__ = ["ROW_CAPACITY", "SLOT_GAP", "Lifetime", "Place", "Plan", "plan_memory"]

ROW_CAPACITY = 256
"""Elements of a buffer with one value a row."""
SLOT_GAP = 256
"""Bytes between slots: two that an instruction reads lie in different groups of banks then."""
ONE_CAPACITY = 64
"""Elements of a buffer with a single value: what one repeat covers."""
_KEEPS_READING = ("Reduce", "Fold")
"""Operations that read on after their first write: their result takes no source's place."""


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
    """Of each queue: two let a tile be copied while another is computed."""
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

    def fixed_bytes(self) -> int:
        """Return what does not grow with the tile; columns apart."""
        total = self.buffers * 4 * ROW_CAPACITY * (len(self.row_inputs) + len(self.row_outputs))
        total += 4 * ROW_CAPACITY * self.counts.get("row", 0)
        total += 4 * ONE_CAPACITY * self.counts.get("one", 0)
        return total + 4 * 8 * ROW_CAPACITY + SLOT_GAP * (self.counts.get("scratch", 0) + 8) + 1024

    def __str__(self) -> str:
        lines = [f"{area}: {count} slots" for area, count in sorted(self.counts.items()) if count]
        for each in self.lifetimes:
            edge = f", after step {each.waits_for}" if each.waits_for >= 0 else ""
            lines.append(
                f"{each.place.area}{each.place.index} = {each.value}:"
                f" section {each.section}, steps {each.first}..{each.last}{edge}"
            )
        return "\n".join(lines)


def plan_memory(program: Program) -> Plan:
    """Return the program with a slot for each value; a slot is used again once its value was last
    read.

    All vector instructions of a core run in order, so that a slot's next value needs no flag;
    queue buffers carry
    the flags between the vector unit and the copies. Numbers that fill a tile keep their slots
    where that takes no more of them.
    """
    from .banks import spread_over_banks

    plan = _Planner(program, ()).run()
    if program.schedule != "blocks":
        kept = _Planner(program, ("row", "tile")).run()
        is_wider = kept.counts["scratch"] > plan.counts["scratch"]
        plan = _Planner(program, ("row",)).run() if is_wider else kept
    return spread_over_banks(plan)


def _values_of(operand: Operand) -> Value | None:
    if isinstance(operand, Derived):
        operand = operand.operand
    if isinstance(operand, Scalar):
        return None
    return operand if isinstance(operand, Value) else None


class _Planner:
    def __init__(self, program: Program, keeping: Sequence[str]) -> None:
        """Take a program, and the spaces in which known numbers keep their slots."""
        self.program = program
        self.keeping = keeping
        self.constants: dict[tuple[Operand, str, str], int] = {}
        """Of a number, a kind and a space, the first value that is filled with it."""
        self.kept: set[int] = set()
        self.places: dict[int, Place] = {}
        self.counts: dict[str, int] = dict.fromkeys(("scratch", "mask", "row", "column", "one"), 0)
        self.lifetimes: list[Lifetime] = []
        self.stored = {value.number: (tensor, value) for tensor, value in program.outputs}
        self.inputs: dict[str, int] = {}
        self.row_inputs: dict[str, None] = {}
        self.outputs: dict[str, int] = {}
        self.row_outputs: dict[str, None] = {}
        self.segments: dict[str, Place] = {}
        self.passing = passing_rows(program) if program.schedule == "lines" else frozenset()

    def run(self) -> Plan:
        for tensor, value in self.program.outputs:
            if value.space == "tile":
                self.outputs[tensor.name] = _bytes(tensor.dtype)
                self.places[value.number] = Place("output", len(self.segments))
                self.segments[f"out {tensor.name}"] = self.places[value.number]
            elif value.space == "row":
                self.row_outputs[tensor.name] = None
                self.places[value.number] = Place("output", len(self.segments))
                self.segments[f"out {tensor.name}"] = self.places[value.number]
        sections = self.program.sections
        everywhere = self.used_elsewhere(sections)
        for index, section in enumerate(sections):
            self.section(index, section, everywhere)
        return Plan(
            self.program,
            self.places,
            self.counts,
            tuple(self.lifetimes),
            tuple(self.inputs.items()),
            tuple(self.outputs.items()),
            tuple(self.row_inputs),
            tuple(self.row_outputs),
            frozenset(self.kept),
        )

    @staticmethod
    def used_elsewhere(sections: Sequence[Section]) -> frozenset[int]:
        """Return the values that another section than their own reads."""
        home = {
            step.target.number: i
            for i, s in enumerate(sections)
            for step in s.steps
            if step.operation != "Read"
        }
        found = set()
        for index, section in enumerate(sections):
            for step in section.steps:
                for source in step.sources:
                    value = _values_of(source)
                    if value is not None and home.get(value.number) != index:
                        found.add(value.number)
        return frozenset(found)

    def section(self, index: int, section: Section, everywhere: frozenset[int]) -> None:
        steps = section.steps
        last: dict[int, int] = {}
        for position, step in enumerate(steps):
            for source in step.sources:
                value = _values_of(source)
                if value is not None:
                    last[value.number] = position
            if step.operation == "Read":
                last[step.target.number] = position
        free: dict[str, list[tuple[Place, int]]] = {}
        taken = {
            (p.area, p.index)
            for n, p in self.places.items()
            if (n in everywhere or n in self.kept) and p.area in ("scratch", "row")
        }
        begun = {**self.counts}
        # Slots that no lasting value holds are free again for another section.
        for area in ("scratch", "mask", "row"):
            free[area] = [
                (Place(area, i), -1) for i in range(begun.get(area, 0)) if (area, i) not in taken
            ]
        for position, step in enumerate(steps):
            if step.operation == "Read":
                continue
            self.step(index, position, step, last, free, everywhere)

    def step(
        self,
        section: int,
        position: int,
        step: Step,
        last: Mapping[int, int],
        free: dict[str, list[tuple[Place, int]]],
        everywhere: frozenset[int],
    ) -> None:
        dying: list[Place] = []
        for number in dict.fromkeys(
            v.number for v in map(_values_of, step.sources) if v is not None
        ):
            place = self.places[number]
            if (
                last.get(number) == position
                and number not in everywhere
                and self.returns(place, number)
            ):
                dying.append(place)
        in_place = step.operation not in _KEEPS_READING and not self.changes_size(step)
        if in_place:
            for place in dying:
                free.setdefault(_pool(place), []).append((place, position))
        if self.is_constant(step):
            number, value = step.target.number, step.target
            first = self.constants.setdefault((step.sources[0], value.kind, value.space), number)
            if first == number:
                self.places[number] = self.fresh("row" if value.space == "row" else "scratch")
            place = self.places[number] = self.places[first]
            self.kept.add(number)
            end = last.get(number, position)
            self.lifetimes.append(Lifetime(section, value, place, position, end, -1))
            return
        if step.target.number not in self.places:
            if step.operation == "Load":
                self.places[step.target.number] = self.load(step, free, everywhere)
                waits = -1
            else:
                # A total lives from tile to tile: no other value of a tile may use its slot.
                is_total = step.operation == "Reduce" and self.program.schedule == "lines"
                lasting = "scratch" if step.operation == "Accumulate" else ""
                lasting = "row" if is_total else lasting
                place, waits = (
                    (self.fresh(lasting), -1) if lasting else self.take(step.target, free, position)
                )
                self.places[step.target.number] = place
            self.lifetimes.append(
                Lifetime(
                    section,
                    step.target,
                    self.places[step.target.number],
                    position,
                    last.get(step.target.number, position),
                    waits,
                )
            )
        if not in_place:
            for place in dying:
                free.setdefault(_pool(place), []).append((place, position))
        unread = (
            last.get(step.target.number, -1) <= position and step.target.number not in everywhere
        )
        place = self.places[step.target.number]
        if (
            unread
            and step.target.number not in self.stored
            and self.returns(place, step.target.number)
        ):
            free.setdefault(_pool(place), []).append((place, position))

    def is_constant(self, step: Step) -> bool:
        """Whether a step fills a slot that nothing else is to take."""
        return (
            step.operation == "Duplicate"
            and isinstance(step.sources[0], Number)
            and step.target.space in self.keeping
            and step.target.number not in self.stored
        )

    def changes_size(self, step: Step) -> bool:
        """Whether elements change their size or their place: then no source's bytes may be
        overwritten early."""
        if step.operation in ("Compare", "CompareScalar", "Select", "Selects"):
            return step.target.space != "tile"
        if step.operation == "Cast":
            (source,) = step.sources
            return isinstance(source, Value) and _bytes(source.kind) != _bytes(step.target.kind)
        return False

    def returns(self, place: Place, number: int) -> bool:
        """Whether a slot may be used again once its value has died."""
        if number in self.kept:
            return False
        if place.area == "input":
            # Whole words of the queue's buffer serve as scratch, until it is freed.
            value = self.input_values.get(number)
            if number in self.one_row:
                # One row for all is copied into each buffer once.
                return False
            return value is not None and value.space == "tile" and _bytes(value.kind) == 4
        if number in self.input_values and place.area == "scratch":
            return False
        if place.area == "row":
            # Parts of a row read its numbers again.
            return self.program.schedule != "lines" or number in self.passing
        return place.area in ("scratch", "mask")

    @property
    def one_row(self) -> frozenset[int]:
        return frozenset(
            step.target.number
            for section in self.program.sections
            for step in section.steps
            if step.operation == "Load" and step.mode in self.program.one_row
        )

    @property
    def input_values(self) -> Mapping[int, Value]:
        return {
            step.target.number: step.target
            for section in self.program.sections
            for step in section.steps
            if step.operation == "Load"
        }

    def load(
        self, step: Step, free: dict[str, list[tuple[Place, int]]], everywhere: frozenset[int]
    ) -> Place:
        space = step.target.space
        if space == "column" and _bytes(step.target.kind) < 4:
            # Only what it is converted to stays: tiles' scratch is idle meanwhile. All loads of a
            # section come first, so none takes another's slot.
            pool = free.get("scratch", [])
            return pool.pop(0)[0] if pool else self.fresh("scratch")
        if space in ("one", "column"):
            return self.fresh(space)
        key = f"in {step.mode}"
        if key not in self.segments:
            self.segments[key] = Place("input", len(self.segments))
            if space == "row":
                self.row_inputs[step.mode] = None
            else:
                self.inputs[step.mode] = _bytes(step.target.kind)
        return self.segments[key]

    def take(
        self, value: Value, free: dict[str, list[tuple[Place, int]]], position: int
    ) -> tuple[Place, int]:
        if value.space in ("one", "column"):
            return self.fresh(value.space), -1
        area = "mask" if value.kind == "mask" and value.space == "tile" else "scratch"
        area = "row" if value.space == "row" else area
        pool = free.get(area, [])
        if pool:
            best = min(pool, key=lambda each: (each[0].area != "scratch", each[0].index))
            pool.remove(best)
            return best
        return self.fresh(area), -1

    def fresh(self, area: str) -> Place:
        place = Place(area, self.counts[area])
        self.counts[area] += 1
        return place


def _pool(place: Place) -> str:
    return "scratch" if place.area == "input" else place.area


def _bytes(kind: str) -> int:
    if kind == "mask":
        return 0
    row = find_dtype(kind)
    assert row is not None, kind
    return row.size_bytes
