"""Slices moved before element-wise work, and concatenations behind it, so that kernels read parts
of what lies in memory and write parts of what is put together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..ir import Graph, Node, Tensor, Value, fixed_size, is_one, same
from ..ops import OPERATORS
from .rewrite import Rebuilder

__all__ = ["cut_parts"]

_FEW = 8
"""How many elements there are for each that is looked up, at least: it is computed again."""
_MOST_TABLES = 2
"""Tensors in which one is looked up in place of one that is computed from them."""
_MOST_PARTS = 4
"""Most parts of a concatenation: each part is work for a kernel of its own."""


def cut_parts(graph: Graph) -> Graph:
    """Return the graph with element-wise work done on parts of tensors: on those that are put
    together, before they are, and on slices, where of its results only slices are read. Of what is
    looked up at few places only the elements there are computed."""
    return _hoist_slices(_sink_concats(_hoist_lookups(graph)))


def _hoist_lookups(graph: Graph) -> Graph:
    """Return the graph with few places of what is computed element by element computed from these
    places, as a loss needs of the logarithms of all classes."""
    found = [node for node in graph.nodes if _picks_few(graph, node)]
    if not found:
        return graph
    work = _Picker(graph, frozenset(node.output.name for node in found))
    return work.rebuilt(work.rule)


def _picks_few(graph: Graph, node: Node) -> bool:
    if node.operator != "take_along":
        return False
    source, places = graph.inputs_of(node)
    producer = graph.producers.get(source.name)
    if producer is None or not _is_elementwise(producer):
        return False
    axis = node.settings.integer("axis")
    count, extent = places.shape[axis], source.shape[axis]
    is_known = isinstance(count, int) and isinstance(extent, int)
    return is_known and _FEW * fixed_size(count) <= fixed_size(extent)


def _hoist_slices(graph: Graph) -> Graph:
    """Return the graph with slices of what is computed element by element, and of which only slices
    are read, computed from slices."""
    if not any(node.operator == "slice" for node in graph.nodes):
        return graph
    work = _Cutter(graph, _cut_only(graph))
    return work.rebuilt(work.rule)


def _sink_concats(graph: Graph) -> Graph:
    """Return the graph with what is computed element by element from a concatenation computed for
    each of its parts."""
    if not any(node.operator == "concat" for node in graph.nodes):
        return graph
    work = _Joiner(graph, _joined_only(graph))
    return work.rebuilt(work.rule)


def _cut_only(graph: Graph) -> frozenset[str]:
    """Return the element-wise results of which nothing but slices of step 1 is read in the end."""
    returned = {tensor for _, tensor in graph.outputs}
    found: set[str] = set()
    for node in reversed(graph.nodes):
        name = node.output.name
        users = graph.users[name]
        if name in returned or not users or not _is_elementwise(node) or not node.output.shape:
            continue
        if all(_is_cut(user) or user.output.name in found for user in users):
            found.add(name)
    return frozenset(found)


def _joined_only(graph: Graph) -> frozenset[str]:
    """Return the concatenations of few parts, and the results of these, that only element-wise
    operators read."""
    returned = {tensor for _, tensor in graph.outputs}
    found: set[str] = set()
    for node in graph.nodes:
        name = node.output.name
        is_few = node.operator == "concat" and 1 < len(node.inputs) <= _MOST_PARTS
        is_plain = _is_elementwise(node) or _keeps_end(graph, node)
        if not is_few and not (is_plain and found.intersection(node.inputs)):
            continue
        shape = node.output.shape
        if name in returned or not all(isinstance(extent, int) for extent in shape):
            continue
        at_end = node.operator != "concat" or node.settings["axis"] == len(shape) - 1
        if all(
            _is_elementwise(user) or (at_end and _keeps_end(graph, user))
            for user in graph.users[name]
        ):
            found.add(name)
    return frozenset(found)


def _keeps_end(graph: Graph, node: Node) -> bool:
    """Return whether a change of shape leaves the last axis as it is."""
    if node.operator != "reshape":
        return False
    (source,) = graph.inputs_of(node)
    return source.shape[-1:] == node.output.shape[-1:] != ()


def _is_elementwise(node: Node) -> bool:
    return OPERATORS[node.operator].kind == "elementwise" and bool(node.inputs)


def _is_cut(node: Node) -> bool:
    return node.operator == "slice" and node.settings["step"] == 1


class _Picker(Rebuilder):
    def __init__(self, graph: Graph, picked: frozenset[str]) -> None:
        super().__init__(graph)
        self._picked = picked

    def rule(self, node: Node, inputs: Sequence[Value]) -> Value | None:
        """Return what is looked up as it is computed from what is looked up; None for others."""
        if node.output.name not in self._picked:
            return None
        rank = len(node.output.shape)
        axis = node.settings.axis(rank)
        tables = self._tables(node.inputs[0], axis - rank)
        if len(tables) > _MOST_TABLES:
            return None
        if not all(_fits(self.values[name], inputs[1], axis - rank) for name in tables):
            return None
        known: dict[str, Value] = {}
        return self._at(node.inputs[0], inputs[1], axis - rank, known)

    def _tables(self, name: str, axis: int) -> set[str]:
        """Return the tensors that would be looked up in; the axis counts from the end."""
        found: set[str] = set()
        seen: set[str] = set()
        stack = [name]
        while stack:
            each = stack.pop()
            if each in seen:
                continue
            seen.add(each)
            node = self.graph.producers.get(each)
            if node is None or not _is_elementwise(node):
                found.add(each)
                continue
            stack += [t.name for t in self.graph.inputs_of(node) if _varies(t, axis)]
        return found

    def _at(self, name: str, places: Value, axis: int, known: dict[str, Value]) -> Value:
        if name not in known:
            node = self.graph.producers.get(name)
            if node is None or not _is_elementwise(node):
                known[name] = _taken(self.values[name], places, axis)
            else:
                operands = [
                    self._at(tensor.name, places, axis, known)
                    if _varies(tensor, axis)
                    else self.values[tensor.name]
                    for tensor in self.graph.inputs_of(node)
                ]
                known[name] = self.builder.apply(node.operator, *operands, **dict(node.attributes))
        return known[name]


def _is_line(table: Value, axis: int) -> bool:
    return all(is_one(extent) for at, extent in enumerate(table.shape) if at != axis + table.ndim)


def _fits(table: Value, places: Value, axis: int) -> bool:
    """Return whether places along an axis, counted from the end, name elements of a table: it has
    one line for all of them, or a line for each."""
    if _is_line(table, axis):
        return True
    pairs = zip(table.shape, places.shape, strict=False)
    return table.ndim == places.ndim and all(
        is_one(other) or same(own, other)
        for at, (own, other) in enumerate(pairs)
        if at != axis + table.ndim
    )


def _taken(table: Value, places: Value, axis: int) -> Value:
    if table.ndim == places.ndim and not _is_line(table, axis):
        return table.apply("take_along", places, axis=axis + places.ndim)
    line = table.reshape(table.shape[axis])
    return line.apply("take", places.reshape(-1), axis=0).reshape(*places.shape)


class _Cutter(Rebuilder):
    def __init__(self, graph: Graph, cut_only: frozenset[str]) -> None:
        super().__init__(graph)
        self._cut_only = cut_only
        self._known: dict[tuple[str, int, int, int], Value] = {}

    def rule(self, node: Node, inputs: Sequence[Value]) -> Value | None:
        """Return a slice's value, computed from slices; None for what stays as it is."""
        name = node.inputs[0] if node.inputs else ""
        if not _is_cut(node) or name not in self._cut_only:
            return None
        rank = len(node.output.shape)
        axis = node.settings.axis(rank)
        start, stop = node.settings.integer("start"), node.settings.integer("stop")
        return self.part(name, axis - rank, start, stop)

    def part(self, name: str, axis: int, start: int, stop: int) -> Value:
        """Return a part of a tensor; the axis counts from the end."""
        key = (name, axis, start, stop)
        if key not in self._known:
            self._known[key] = self._part(name, axis, start, stop)
        return self._known[key]

    def _part(self, name: str, axis: int, start: int, stop: int) -> Value:
        node = self.graph.producers.get(name)
        if node is None or name not in self._cut_only:
            return cut(self.values[name], axis, start, stop)
        inputs = [
            self.part(tensor.name, axis, start, stop)
            if _varies(tensor, axis)
            else self.values[tensor.name]
            for tensor in self.graph.inputs_of(node)
        ]
        return self.builder.apply(node.operator, *inputs, **dict(node.attributes))


class _Joiner(Rebuilder):
    def __init__(self, graph: Graph, joined_only: frozenset[str]) -> None:
        super().__init__(graph)
        self._joined_only = joined_only
        self._parts: dict[str, tuple[int, tuple[Value, ...]]] = {}
        """Concatenations by name: the axis, counted from the end, and the parts."""

    def rule(self, node: Node, inputs: Sequence[Value]) -> Value | None:
        """Return an element-wise result as its parts; None for what stays as it is."""
        if node.operator == "concat":
            if node.output.name in self._joined_only:
                rank = len(node.output.shape)
                axis = node.settings.axis(rank) - rank
                self._parts[node.output.name] = (axis, tuple(inputs))
            return None
        found = [self._parts[name] for name in node.inputs if name in self._parts]
        if not found:
            return None
        axis, parts = found[0]
        if _keeps_end(self.graph, node) and axis == -1:
            outer = node.output.shape[:-1]
            results = tuple(part.reshape(*outer, part.shape[-1]) for part in parts)
            return self._together(node, axis, results)
        if not _is_elementwise(node):
            return None
        sizes = [fixed_size(part.shape[axis]) for part in parts]
        operands = [
            self._operand(name, value, axis, sizes)
            for name, value in zip(node.inputs, inputs, strict=True)
        ]
        if any(each is None for each in operands):
            return None
        given: list[Any] = operands
        results = tuple(
            self.builder.apply(
                node.operator, *(each[at] for each in given), **dict(node.attributes)
            )
            for at in range(len(sizes))
        )
        return self._together(node, axis, results)

    def _together(self, node: Node, axis: int, results: tuple[Value, ...]) -> Value:
        """Return a node's value put together of its parts."""
        if node.output.name in self._joined_only:
            self._parts[node.output.name] = (axis, results)
        return self.builder.apply("concat", *results, axis=axis + len(node.output.shape))

    def _operand(
        self, name: str, value: Value, axis: int, sizes: Sequence[int]
    ) -> Sequence[Value] | None:
        """Return an operand for each part; None where it is put together of other parts."""
        if name in self._parts:
            own, parts = self._parts[name]
            fits = own == axis and [part.shape[axis] for part in parts] == list(sizes)
            return parts if fits else None
        if not _varies(value.tensor, axis):
            return [value] * len(sizes)
        ends = [sum(sizes[: at + 1]) for at in range(len(sizes))]
        return [cut(value, axis, end - size, end) for end, size in zip(ends, sizes, strict=True)]


def cut(value: Value, axis: int, start: int, stop: int) -> Value:
    """Return a part of a value; the axis counts from the end."""
    return value.apply("slice", axis=axis + value.ndim, start=start, stop=stop, step=1)


def _varies(tensor: Tensor, axis: int) -> bool:
    return len(tensor.shape) >= -axis and not is_one(tensor.shape[axis])
