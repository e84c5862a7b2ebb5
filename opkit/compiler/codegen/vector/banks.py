"""Which slot is which, so that what an instruction reads and writes meets in few banks of UB.

Slots lie a multiple of 512 bytes and `SLOT_GAP` apart, so that every other one begins in the same
group of banks. Two sources from one group are read one after the other; a result that goes to the
other group than a source's meets the next repeat's reads.
"""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import replace

from .slots import Place, Plan
from .steps import Value

__all__ = ["spread_over_banks"]

_READS = 1.0
"""Cycles a repeat of two sources from one group takes more."""
_READ_AND_WRITE = 0.8
"""Those of a result in another group than a source; chips' JSON: `read_write_conflict_cycles`."""


def spread_over_banks(plan: Plan) -> Plan:
    """Return a plan with its scratch slots in the order that costs least."""
    count = plan.counts["scratch"]
    apart, alike = _pairs(plan)

    def cost(order: list[int]) -> float:
        group = {slot: at % 2 for at, slot in enumerate(order)}
        # The queues' buffers begin where slot 0 does.
        group[-1] = int(is_shifted)
        total = sum(_READS * n for (a, b), n in apart.items() if group[a] == group[b])
        return total + sum(
            _READ_AND_WRITE * n for (a, b), n in alike.items() if group[a] != group[b]
        )

    order = list(range(count))
    is_shifted = False
    least = cost(order)
    if plan.program.schedule == "blocks":
        # Such tiles leave room before the first slot.
        is_shifted = True
        is_shifted = cost(order) < least
        least = cost(order)
    is_better = True
    while is_better:
        is_better = False
        for a, b in itertools.combinations(range(count), 2):
            other = list(order)
            other[a], other[b] = order[b], order[a]
            found = cost(other)
            if found < least:
                order, least, is_better = other, found, True
    at = {slot: Place("scratch", index) for index, slot in enumerate(order)}

    def moved(place: Place) -> Place:
        return at[place.index] if place.area == "scratch" else place

    return replace(
        plan,
        is_shifted=is_shifted,
        places={number: moved(place) for number, place in plan.places.items()},
        lifetimes=tuple(replace(each, place=moved(each.place)) for each in plan.lifetimes),
    )


def _pairs(plan: Plan) -> tuple[Counter[tuple[int, int]], Counter[tuple[int, int]]]:
    """Return how many instructions read two slots, and write one that they do not read from one;
    queues are slot -1 where nothing lies between them and the slots."""
    apart: Counter[tuple[int, int]] = Counter()
    alike: Counter[tuple[int, int]] = Counter()
    areas = ("scratch",) if plan.reduces_rows else ("scratch", "input", "output")

    def slot(value: Value) -> int | None:
        place = plan.places[value.number]
        if place.area not in areas or value.space != "tile":
            return None
        return place.index if place.area == "scratch" else -1

    for section in plan.program.sections:
        for step in section.steps:
            if step.operation in ("Read", "Load") or step.target.number in plan.constants:
                continue
            values = [each for each in step.sources if isinstance(each, Value)]
            found = [slot(each) for each in values if each.kind == "float32"]
            sources = [each for each in found if each is not None]
            apart.update(itertools.combinations(sources, 2))
            target = slot(step.target) if step.target.kind == "float32" else None
            if target is not None and target not in sources and len(values) == 1:
                alike.update((each, target) for each in sources)
    return apart, alike
