"""Rows by one kernel, whole ones and those that come in parts.

What lies between reductions is a stage. Whole rows keep from stage to stage what was computed; a
row that comes in parts goes through every stage part by part, and computes it again.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from .steps import Derived, Operand, Program, Scalar, Section, Step, Value

__all__ = ["Stage", "in_lines", "passing_rows", "stages_of"]


@dataclass(frozen=True)
class Stage:
    """What is computed of a tile between reductions."""

    rows: tuple[Step, ...]
    """Steps on one number a row, which is the same for each part of the row."""
    again: tuple[Step, ...]
    """What stages before have computed of whole rows."""
    steps: tuple[Step, ...]
    """Steps on tiles."""

    @property
    def takes_tiles(self) -> bool:
        """Whether it runs for each part of a row."""
        return bool(self.steps)


def in_lines(program: Program) -> Program | None:
    """Return a program of whole rows ordered by stages; None for one that also computes what does
    not change from row to row, or what rows are not alone in.

    An output that an earlier stage reads is a copy of what that reads: it lies in a buffer that
    only the last stage has.
    """
    prepare, *rest = program.sections
    if prepare.steps or len(rest) != 1 or program.domain.batches:
        return None
    steps = list(rest[0].steps)
    spaces = {step.target.space for step in steps}
    if not spaces <= {"tile", "row"} or any(step.operation == "Read" for step in steps):
        return None
    work = _Order(program, steps)
    outputs = []
    number = max(step.target.number for step in steps) + 1
    for tensor, value in program.outputs:
        if work.is_read_before(value):
            copy = replace(value, number=number)
            steps.append(
                Step("Cast", copy, (value,), "CAST_RINT", work.made[value.number].location)
            )
            number, value = number + 1, copy
        outputs.append((tensor, value))
    program = replace(program, schedule="lines", outputs=tuple(outputs))
    work = _Order(program, steps)
    steps.sort(key=lambda step: (work.stages[step.target.number], not _is_of_rows(step)))
    return replace(program, sections=(prepare, Section("tile", tuple(steps))))


def stages_of(program: Program) -> tuple[Stage, ...]:
    """Return the stages of a program that `in_lines` has ordered."""
    steps = program.sections[-1].steps
    stages = _Order(program, steps).stages
    made = {step.target.number: step for step in steps}
    found = []
    for stage in range(max(stages.values()) + 1):
        own = [step for step in steps if stages[step.target.number] == stage]
        tiles = [step for step in own if not _is_of_rows(step) and step.operation != "Load"]
        again: set[int] = set()
        pending = [value for step in tiles for value in values_of(step)]
        while pending:
            value = pending.pop()
            step = made[value.number]
            is_past = stages[value.number] < stage and value.space == "tile"
            if is_past and step.operation != "Load" and value.number not in again:
                again.add(value.number)
                pending += values_of(step)
        rows = [step for step in own if _is_of_rows(step) and step.operation != "Load"]
        repeated = [step for step in steps if step.target.number in again]
        found.append(Stage(tuple(rows), tuple(repeated), tuple(tiles)))
    return tuple(found)


def passing_rows(program: Program) -> frozenset[int]:
    """Return the numbers of rows that only numbers of rows are computed from, in the same stage:
    each part of a row computes them again, from what is still there."""
    order = _Order(program, program.sections[-1].steps)
    return frozenset(
        number
        for number, step in order.made.items()
        if _is_of_rows(step)
        and step.operation != "Load"
        and all(
            _is_of_rows(reader) and order.stages[reader.target.number] == order.stages[number]
            for reader in order.readers.get(number, ())
        )
    )


class _Order:
    """In which stage each value is computed: as late as what reads it allows."""

    def __init__(self, program: Program, steps: list[Step] | tuple[Step, ...]) -> None:
        self.made = {step.target.number: step for step in steps}
        self.outputs = {value.number for _, value in program.outputs}
        self.readers: dict[int, list[Step]] = {}
        self.ready: dict[int, int] = {}
        for step in steps:
            values = values_of(step)
            for value in values:
                self.readers.setdefault(value.number, []).append(step)
            first = max([0, *(self.ready[value.number] for value in values)])
            self.ready[step.target.number] = first + (step.operation == "Reduce")
        self.last = max(self.ready[number] for number in self.outputs)
        self.stages: dict[int, int] = {}
        for step in reversed(steps):
            number = step.target.number
            if step.operation == "Reduce":
                self.stages[number] = self.ready[number] - 1
            else:
                self.stages[number] = min(
                    [
                        self.last,
                        *(self.stages[r.target.number] for r in self.readers.get(number, ())),
                    ]
                )

    def is_read_before(self, value: Value) -> bool:
        """Whether an output is there before the last stage, or is what was loaded."""
        is_loaded = self.made[value.number].operation == "Load"
        return self.stages[value.number] < self.last or is_loaded


def _is_of_rows(step: Step) -> bool:
    return step.target.space == "row" and step.operation != "Reduce"


def values_of(step: Step) -> list[Value]:
    """Return the values that a step reads."""
    found: list[Value] = []
    for source in step.sources:
        each: Operand = source.operand if isinstance(source, Derived) else source
        each = each.value if isinstance(each, Scalar) else each
        if isinstance(each, Value):
            found.append(each)
    return found
