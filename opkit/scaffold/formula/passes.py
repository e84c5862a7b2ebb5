"""A plan for rows that do not fit the unified buffer: taken in parts, once for every reduction that
waits for another.

Layer norm takes three passes over its row: the mean, the variance that needs it, and the result
that needs both. What lies between is computed again from the inputs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from .plan import Plan, Step, Value, allocate

__all__ = ["LongPlan", "Pass", "split"]


@dataclass(frozen=True)
class Pass:
    """One time over the row, and what follows it."""

    steps: tuple[Step, ...]
    """For every part of the row; reductions among them, whose parts are joined."""
    then: tuple[Step, ...]
    """Once, on the row's own values."""
    writes: bool
    """Whether it computes the outputs that have a value per element."""


@dataclass(frozen=True)
class LongPlan:
    """The passes over one row, and what they need."""

    first: tuple[Step, ...]
    """Before any pass: what needs no reduction."""
    passes: tuple[Pass, ...]
    outputs: tuple[Value, ...]
    tile_registers: int
    row_registers: int
    """One for each of the row's values: they last from pass to pass."""
    mask_registers: int


def split(steps: Sequence[Step], outputs: Sequence[Value]) -> LongPlan:
    """Return the passes of a plan whose values have no registers yet."""
    by_number = {step.target.number: step for step in steps}
    levels: dict[int, int] = {}
    for step in steps:
        level = max((levels[s.number] for s in step.sources if isinstance(s, Value)), default=0)
        levels[step.target.number] = level + 1 if _reduces(step) else level
    fixed = _lasting(steps)
    row_masks = sum(value.space == "mask" for value in fixed.values())

    def closure(wanted: Sequence[Value]) -> list[Step]:
        found: set[int] = set()
        stack = [value.number for value in wanted]
        while stack:
            number = stack.pop()
            if number in found or number in fixed:
                continue
            found.add(number)
            sources = by_number[number].sources
            stack += [source.number for source in sources if isinstance(source, Value)]
        return [step for step in steps if step.target.number in found]

    def lasting(level: int) -> list[Step]:
        return [
            step
            for step in steps
            if step.target.number in fixed
            and not _reduces(step)
            and levels[step.target.number] == level
        ]

    def place(chosen: list[Step], results: Sequence[Value] = ()) -> Plan:
        return allocate(chosen, list(results), fixed=fixed, first_mask=row_masks)

    plans: list[Plan] = []
    passes = []
    for level in range(1, max(levels.values(), default=0) + 1):
        reductions = [s for s in steps if _reduces(s) and levels[s.target.number] == level]
        sources = [s for step in reductions for s in step.sources if isinstance(s, Value)]
        inner = closure(sources)
        numbers = {step.target.number for step in (*inner, *reductions)}
        plans.append(place([step for step in steps if step.target.number in numbers]))
        passes.append(Pass(plans[-1].steps, place(lasting(level)).steps, False))
    tiles = [value for value in outputs if value.space == "tile"]
    results: dict[int, Value] = dict(fixed)
    if tiles:
        plans.append(place(closure(tiles), tiles))
        passes.append(Pass(plans[-1].steps, (), True))
        results |= {value.number: value for value in plans[-1].outputs}
    return LongPlan(
        first=place(lasting(0)).steps,
        passes=tuple(passes),
        outputs=tuple(results[value.number] for value in outputs),
        tile_registers=max((plan.tile_registers for plan in plans), default=0),
        row_registers=sum(value.space == "row" for value in fixed.values()),
        mask_registers=max((plan.mask_registers for plan in plans), default=row_masks),
    )


def _reduces(step: Step) -> bool:
    return step.operation.startswith("Reduce")


def _lasting(steps: Sequence[Step]) -> Mapping[int, Value]:
    """Return the values that are one for the row, each with a register of its own."""
    fixed: dict[int, Value] = {}
    counts = {"row": 0, "mask": 0}
    for step in steps:
        value = step.target
        if value.space == "scalar":
            fixed[value.number] = value
        elif value.space == "row" or value.per_row:
            fixed[value.number] = replace(value, register=counts[value.space])
            counts[value.space] += 1
    return fixed
