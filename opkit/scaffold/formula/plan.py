"""The instruction plan: what one tile's Compute does, instruction by instruction, before it is
text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from opkit.algebra import Node

__all__ = ["EVENTS", "Plan", "Scalar", "Step", "Value", "allocate"]

EVENTS = 8
"""Events between two pipes, one for each buffer of a kernel's queues: at most so many
inputs or outputs.
Source: Ascend C API, AllocEventID: event ids 0 to 7."""

ValueSpace = Literal["uniform", "tile", "row", "mask", "scalar"]

# Source: vector instructions of the Atlas A2 that take int32 and int16 as well as float.
INTEGER_OPERATIONS = frozenset(
    {"Widen", "Add", "Sub", "Mul", "Max", "Min", "Adds", "Muls", "Maxs", "Mins", "Duplicate"}
)


@dataclass(frozen=True)
class Value:
    """What one step computes."""

    number: int
    space: ValueSpace
    """`tile`: one per element; `row`: one per row; `mask`: one bit per element; `scalar`: a row
    value, read out."""
    per_row: bool = False
    """For a mask: whether it compares row values."""
    register: int = -1
    """The scratch tensor of its space that holds it; -1 until allocated."""


@dataclass(frozen=True)
class Scalar:
    """An operand that is the same for every element."""

    expression: Node
    """A number, or an expression over attributes."""


Operand = Value | Scalar


@dataclass(frozen=True)
class Step:
    """One instruction."""

    operation: str
    """The Ascend C name, or `Widen` (bring an input to the compute type) or `Read` (a row value as
    a scalar)."""
    target: Value
    sources: tuple[Operand, ...]
    mode: str = ""
    """Rounding mode of a Cast, comparison mode of a Compare, input name of a Widen."""
    note: str = ""
    """The maths that the step computes."""


@dataclass(frozen=True)
class Plan:
    """The steps of one tile or row, and what they need."""

    steps: tuple[Step, ...]
    outputs: tuple[Value, ...]
    tile_registers: int
    row_registers: int
    mask_registers: int

    @property
    def operations(self) -> frozenset[str]:
        """Every operation that occurs."""
        return frozenset(step.operation for step in self.steps)

    @property
    def scalars(self) -> tuple[Node, ...]:
        """The expressions over attributes that steps take, each once, in order of use."""
        found: dict[Node, None] = {}
        for step in self.steps:
            for source in step.sources:
                if isinstance(source, Scalar) and not source.expression.is_constant:
                    found.setdefault(source.expression)
        return tuple(found)


def _pool(value: Value) -> str:
    return value.space if value.space != "mask" else "mask"


def allocate(
    steps: list[Step],
    outputs: list[Value],
    *,
    fixed: Mapping[int, Value] | None = None,
    first_mask: int = 0,
) -> Plan:
    """Return the plan with a register for each value, reusing a register once its value was last
    read.

    Args:
        steps: in order.
        outputs: the values that are read after the last step.
        fixed: values that have their register already and keep it, by number.
        first_mask: the first mask register that may be given away.
    """
    fixed = fixed or {}
    last_use = {value.number: len(steps) for value in outputs}
    for position, step in enumerate(steps):
        for source in step.sources:
            if isinstance(source, Value):
                last_use[source.number] = max(position, last_use.get(source.number, -1))
    free: dict[str, list[int]] = {"tile": [], "row": [], "mask": []}
    count = {"tile": 0, "row": 0, "mask": first_mask}
    placed: dict[int, Value] = dict(fixed)
    placed_steps = []
    for position, step in enumerate(steps):
        sources = tuple(placed[s.number] if isinstance(s, Value) else s for s in step.sources)
        dying = {
            s.number: s
            for s in sources
            if isinstance(s, Value)
            and s.space != "scalar"
            and s.number not in fixed
            and last_use[s.number] == position
        }
        # Elementwise instructions may write over a source; a reduction reads on after its first
        # write.
        in_place = not step.operation.startswith("Reduce")
        if in_place:
            for value in dying.values():
                free[_pool(value)].append(value.register)
        target = fixed.get(step.target.number, step.target)
        if target.space != "scalar" and target.number not in fixed:
            pool = free[_pool(target)]
            if pool:
                register = min(pool)
                pool.remove(register)
            else:
                register = count[_pool(target)]
                count[_pool(target)] += 1
            target = replace(target, register=register)
            if target.number not in last_use:
                free[_pool(target)].append(register)
        if not in_place:
            for value in dying.values():
                free[_pool(value)].append(value.register)
        placed[target.number] = target
        placed_steps.append(replace(step, target=target, sources=sources))
    return Plan(
        steps=tuple(placed_steps),
        outputs=tuple(placed[value.number] for value in outputs),
        tile_registers=count["tile"],
        row_registers=count["row"],
        mask_registers=count["mask"],
    )
