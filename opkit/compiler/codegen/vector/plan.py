"""Where each value of a vector kernel lies in the unified buffer, and for how long."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from opkit.dtypes import find_dtype

from .banks import spread_over_banks
from .lines import passing_rows
from .slots import Lifetime, Place, Plan
from .steps import Derived, Number, Operand, Program, Scalar, Section, Step, Value

__all__ = ["plan_memory"]

_KEEPS_READING = ("Reduce", "Fold")
"""Operations that read on after their first write: their result takes no source's place."""


def plan_memory(program: Program) -> Plan:
    """Return the program with a slot for each value; a slot is used again once its value was last
    read.

    All vector instructions of a core run in order, so that a slot's next value needs no flag;
    queue buffers carry
    the flags between the vector unit and the copies. Numbers that fill a tile keep their slots
    where that takes no more of them.
    """
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
        """The first value filled with a number, by the number, its kind and its space."""
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
