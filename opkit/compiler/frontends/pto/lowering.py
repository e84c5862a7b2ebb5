"""A tile program as a graph: loops run out, stores joined to arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from opkit.errors import UsageError

from ...ir import Graph, GraphError, Location, Value
from ...tracing import GraphBuilder
from .instructions import INSTRUCTIONS, Instruction, extract, insert
from .parts import Body, Branch, Loop, Memory, Step, setting_at

__all__ = ["applied", "lower"]


def lower(name: str, memories: Sequence[Memory], body: Body) -> Graph:
    """Return a program's graph.

    Raises:
        GraphError: an output has elements that nothing writes, or a register is read before it is
            written.
    """
    return _Lowering(name, memories).run(body)


def applied(
    row: Instruction, values: Sequence[Value], settings: Mapping[str, Any], place: Location | None
) -> Value:
    """Return an instruction's result; its mistakes are the program's, at a line."""
    try:
        return row.apply(*values, **settings)
    except GraphError:
        raise
    except UsageError as err:
        raise GraphError(f"{row.name}: {err.message}", location=place, help=err.help) from err


@dataclass
class _Lowering:
    name: str
    memories: Sequence[Memory]
    tiles: dict[str, Value] = field(default_factory=dict)
    known: dict[str, int] = field(default_factory=dict)

    def run(self, body: Body) -> Graph:
        self.builder = GraphBuilder(self.name)
        self.arrays: dict[str, Value] = {}
        self.stored: dict[str, dict[tuple[tuple[int, int], ...], Value]] = {}
        for memory in self.memories:
            if memory.is_output:
                self.stored[memory.name] = {}
            else:
                self.arrays[memory.name] = self.builder.input(
                    memory.name, memory.shape, memory.dtype
                )
        self.body(body)
        for memory in self.memories:
            if memory.is_output:
                self.builder.output(memory.name, self.joined(memory))
        return self.builder.graph()

    def body(self, steps: Body) -> None:
        for step in steps:
            if isinstance(step, Loop):
                for value in range(*step.bounds):
                    self.known[step.variable] = value
                    self.body(step.body)
            elif isinstance(step, Branch):
                self.body(step.body if step.condition.holds(self.known) else step.otherwise)
            else:
                with self.builder.at(step.location):
                    self.step(step)

    def step(self, step: Step) -> None:
        settings = {key: setting_at(value, self.known) for key, value in step.settings}
        try:
            if step.name == "TLOAD":
                assert step.target is not None
                self.tiles[step.target.name] = self.loaded(step, settings)
            elif step.name == "TSTORE":
                memory, tile = step.operands
                region = tuple(
                    (offset, offset + extent)
                    for offset, extent in zip(settings["offsets"], tile.shape, strict=True)
                )
                self.stored[memory.name][self.within(memory, region)] = self.tile(tile)
            elif step.name == "TEXPANDS":
                assert step.target is not None
                number = self.builder.constant(settings["scalar"], settings["dtype"])
                self.tiles[step.target.name] = number.apply("broadcast_to", shape=settings["shape"])
            elif step.target is not None:
                values = [self.tile(each) for each in step.operands]
                row = INSTRUCTIONS[step.name]
                self.tiles[step.target.name] = applied(row, values, settings, step.location)
        except GraphError:
            raise
        except UsageError as err:
            raise GraphError(err.message, location=step.location, help=err.help) from err

    def tile(self, tile: Any) -> Value:
        if tile.name not in self.tiles:
            raise UsageError(f"%{tile.name} is read before anything has written it")
        return self.tiles[tile.name]

    def within(
        self, memory: Any, region: tuple[tuple[int, int], ...]
    ) -> tuple[tuple[int, int], ...]:
        for axis, ((begin, end), extent) in enumerate(zip(region, memory.shape, strict=True)):
            if begin < 0 or end > extent:
                raise UsageError(
                    f'elements {begin} to {end} do not lie within axis {axis} of "{memory.name}",'
                    f" which has {extent}"
                )
        return region

    def loaded(self, step: Step, settings: Mapping[str, Any]) -> Value:
        (memory,) = step.operands
        offsets, shape = settings["offsets"], settings["shape"]
        if memory.name in self.arrays:
            return extract(self.arrays[memory.name], offsets, shape)
        region = tuple((o, o + e) for o, e in zip(offsets, shape, strict=True))
        found = self.stored[memory.name].get(region)
        if found is None:
            raise UsageError(
                f'"{memory.name}" is loaded where no store of the same part comes before',
                help="load the parts that were stored",
            )
        return found

    def joined(self, memory: Memory) -> Value:
        """Return an output made of what was stored, the later over the earlier."""
        stored = self.stored[memory.name]
        whole = tuple((0, extent) for extent in memory.shape)
        if not stored:
            raise GraphError(f'nothing writes "{memory.name}"', location=None)
        found = _grid(self.builder, stored, whole, 0)
        if found is not None:
            return found
        # Parts overlap or leave gaps: over a first part that covers all, one after another.
        value: Value | None = None
        for region, part in stored.items():
            if region == whole:
                value = part
            elif value is not None:
                value = insert(value, part, tuple(begin for begin, _ in region))
        if value is None:
            raise GraphError(
                f'"{memory.name}" has elements that nothing writes, or parts that overlap',
                location=None,
                help="store every part once, or the whole first",
            )
        return value


def _grid(
    builder: GraphBuilder,
    stored: Mapping[tuple[tuple[int, int], ...], Value],
    whole: tuple[tuple[int, int], ...],
    axis: int,
) -> Value | None:
    """Return parts that fill an array, joined axis by axis; None where they leave gaps."""
    if axis == len(whole):
        return next(iter(stored.values())) if len(stored) == 1 else None
    groups: dict[tuple[int, int], dict[tuple[tuple[int, int], ...], Value]] = {}
    for region, value in stored.items():
        groups.setdefault(region[axis], {})[region] = value
    place, end = whole[axis]
    parts = []
    for begin, after in sorted(groups):
        if begin != place:
            return None
        part = _grid(builder, groups[begin, after], whole, axis + 1)
        if part is None:
            return None
        parts.append(part)
        place = after
    if place != end:
        return None
    return parts[0] if len(parts) == 1 else builder.apply("concat", *parts, axis=axis)
