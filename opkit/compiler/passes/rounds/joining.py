"""Graphs in which the rounds of loops are copies of one body, to graphs that have the body once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

from ...ir import Graph, Node, Value
from ..rewrite import Rebuilder
from .alike import added, inner_links, kinds, runs
from .packs import Pack, moved
from .rules import added_products, has_rule, pack_of, side_by_side
from .sources import counted, numbers_of, places_of, windows

__all__ = ["join_rounds"]

Key: TypeAlias = "str | tuple[str, ...]"
"""A tensor of the graph, or the same tensor of several rounds."""
_SUMS = {"add": "sum", "maximum": "max", "minimum": "min"}
_MOST_PASSES = 4
"""Loops inside of each other whose rounds are joined: one a pass, from the outermost on."""


def join_rounds(graph: Graph) -> Graph:
    """Return a graph in which equal work of many rounds is one operator.

    What is joined is written side by side, or added up, or of which the largest or smallest is
    taken, in four rounds or more. Results are the same, but for the order of sums. Extents are
    whole numbers. A graph that would not get smaller comes back as it is.
    """
    for _ in range(_MOST_PASSES):
        joined = _Joiner(graph).joined()
        if len(joined.nodes) >= len(graph.nodes):
            return graph
        graph = joined
    return graph


class _Plan(NamedTuple):
    """What a value is made of, and how."""

    needs: Sequence[Key]
    build: Callable[[], Value | Pack]


class _Joiner(Rebuilder):
    def __init__(self, graph: Graph) -> None:
        super().__init__(graph)
        self._kinds = kinds(graph)
        self._links = inner_links(graph, _SUMS)
        self._made: dict[Key, Value | Pack] = {}
        self._made.update((name, value) for name, value in self.values.items())
        self._plans: dict[Key, _Plan] = {}
        self._joinable: dict[tuple[str, ...], bool] = {}

    def joined(self) -> Graph:
        for _, tensor in self.graph.outputs:
            self._make(tensor)
            self.values[tensor] = self._value(tensor)
        return self.finish()

    def _make(self, key: Key) -> None:
        # By hand instead of by recursion: values that loops carry on hang on each other.
        waiting = [key]
        while waiting:
            now = waiting[-1]
            if now in self._made:
                waiting.pop()
                continue
            plan = self._plans.get(now)
            if plan is None:
                plan = self._plans[now] = self._planned(now)
            missing = [each for each in plan.needs if each not in self._made]
            if missing:
                waiting += missing
                continue
            with self.builder.at(self._node(now).location):
                self._made[now] = plan.build()

    def _node(self, key: Key) -> Node:
        return self.graph.producers[key if isinstance(key, str) else key[0]]

    def _value(self, name: str) -> Value:
        value = self._made[name]
        assert isinstance(value, Value)
        return value

    def _pack(self, names: tuple[str, ...]) -> Pack:
        pack = self._made[names]
        assert isinstance(pack, Pack)
        return pack

    def _planned(self, key: Key) -> _Plan:
        if isinstance(key, tuple):
            plan = self._of_rounds(key)
            assert plan is not None
            return plan
        node = self._node(key)
        if node.operator == "concat":
            return self._concat(node)
        if node.operator in _SUMS and node.output.dtype != "bool":
            return self._sum(node)
        return _Plan(node.inputs, lambda: self.same(node, [self._value(n) for n in node.inputs]))

    # Where rounds meet

    def _concat(self, node: Node) -> _Plan:
        axis = node.settings["axis"]
        place = axis % len(node.output.shape)
        parts: list[str | list[Key]] = []
        at = 0

        for run in runs([self._kinds[name] for name in node.inputs]):
            phases = run.rounds(node.inputs)
            wanted = [_key(names) for names in phases]
            if not all(self._can_join(names) for names in wanted):
                continue
            if all(isinstance(each, str) for each in wanted):
                continue
            parts += [*node.inputs[at : run.start], wanted]
            at = run.stop
        parts += node.inputs[at:]

        def build() -> Value:
            values = [
                self._value(part) if isinstance(part, str) else self._in_a_row(part, place)
                for part in parts
            ]
            if len(values) == 1:
                return values[0]
            return self.builder.apply("concat", *values, axis=place)

        needs: list[Key] = []
        for part in parts:
            needs += [part] if isinstance(part, str) else part
        return _Plan(needs, build)

    def _in_a_row(self, phases: Sequence[Key], axis: int) -> Value:
        """Return what the rounds put side by side along an axis."""
        operands = [self._made[each] for each in phases]
        pack = side_by_side(operands, axis) if len(operands) > 1 else operands[0]
        assert isinstance(pack, Pack)
        shape = pack.shape
        extent: Any = shape[axis]
        pack = moved(pack, len(shape) - axis)
        return pack.value.reshape(*shape[:axis], pack.count * extent, *shape[axis + 1 :])

    def _sum(self, node: Node) -> _Plan:
        names = added(self.graph, node, self._links)
        shape, dtype = node.output.shape, node.output.dtype
        tensors = self.graph.tensors
        found = [
            run
            for run in runs([self._kinds[name] for name in names], most_phases=1)
            if all(
                tensors[name].shape == shape and tensors[name].dtype == dtype
                for name in names[run.start : run.stop]
            )
        ]
        sums: list[tuple[str, ...]] = []
        others = list(names)
        for run in reversed(found):
            (wanted,) = run.rounds(names)
            if isinstance(_key(wanted), tuple) and self._can_join(wanted):
                sums.insert(0, wanted)
                del others[run.start : run.stop]
        if not sums:
            return _Plan(
                node.inputs, lambda: self.same(node, [self._value(n) for n in node.inputs])
            )
        is_sum = node.operator == "add"
        products = {wanted: self._product_plan(wanted) if is_sum else () for wanted in sums}
        needs: list[Key] = list(others)
        for wanted in sums:
            needs += products[wanted] or (wanted,)

        def build() -> Value:
            parts = [self._value(name) for name in others]
            parts += [self._folded(node, wanted, products[wanted]) for wanted in sums]
            total = parts[0]
            for part in parts[1:]:
                total = total.apply(node.operator, part)
            return total

        return _Plan(needs, build)

    def _product_plan(self, names: tuple[str, ...]) -> tuple[Key, ...]:
        """Return the operands of products of matrices that are added up; none of others."""
        node = self._node(names)
        if node.operator == "cast":
            names = tuple(self._node(name).inputs[0] for name in names)
            inner = self.graph.producers.get(names[0])
            if inner is None:
                return ()
            node = inner
        if node.operator != "matmul":
            return ()
        operands = self._operands(names)
        are_packs = all(isinstance(each, tuple) for each in operands)
        return tuple(operands) if are_packs else ()

    def _folded(self, node: Node, names: tuple[str, ...], operands: Sequence[Key]) -> Value:
        """Return the sum, the largest or the smallest of the rounds' values."""
        if operands:
            first = self._node(names)
            multiplied = self._node(first.inputs[0]) if first.operator == "cast" else first
            total = added_products(multiplied, [self._made[each] for each in operands])
            if total is not None:
                return total.astype(node.output.dtype)
        if names not in self._made:
            self._make(names)
        pack = self._pack(names)
        return pack.value.apply(_SUMS[node.operator], axis=pack.place, keepdims=False)

    # What all rounds compute

    def _operands(self, names: Sequence[str]) -> list[Key]:
        nodes = [self._node(name) for name in names]
        return [_key(each) for each in zip(*(node.inputs for node in nodes), strict=True)]

    def _of_rounds(self, names: tuple[str, ...]) -> _Plan | None:
        """Return how a tensor of all rounds is computed; None where it is not at once."""
        producers = self.graph.producers
        if any(name not in producers for name in names):
            return None
        nodes = [producers[name] for name in names]
        node = nodes[0]
        if node.operator == "constant":
            numbers = numbers_of(nodes)
            if numbers is None:
                return None
            return _Plan((), lambda: counted(self.builder, node, numbers, len(nodes)))
        operands = self._operands(names)
        if node.operator == "slice" and isinstance(operands[0], str):
            source = operands[0]
            places = places_of(nodes, self.graph.tensors[source])
            if places is None:
                return None
            return _Plan([source], lambda: windows(self._value(source), places))
        is_same = all(other.attributes == node.attributes for other in nodes[1:])
        is_known = has_rule(node.operator)
        if node.operator == "take" and not isinstance(operands[0], str):
            return None
        if not is_same or not is_known:
            return None
        return _Plan(operands, lambda: pack_of(node, [self._made[each] for each in operands]))

    def _can_join(self, key: Key) -> bool:
        """Return whether tensors of several rounds, and all that they are made of, are computed at
        once."""
        if isinstance(key, str):
            return True
        seen: list[tuple[str, ...]] = []
        waiting = [key]
        can = True
        while waiting and can:
            names = waiting.pop()
            if names in self._joinable:
                can = self._joinable[names]
                continue
            plan = self._of_rounds(names)
            if plan is None:
                self._joinable[names] = can = False
                break
            self._plans[names] = plan
            # What hangs on itself nowhere is joinable unless found otherwise below.
            self._joinable[names] = True
            seen.append(names)
            waiting += [each for each in plan.needs if isinstance(each, tuple)]
        if not can:
            for names in seen:
                self._joinable[names] = False
        return can


def _key(names: Sequence[str]) -> Key:
    """Return what tensors of several rounds are: one tensor where it is the same in each."""
    return names[0] if all(name == names[0] for name in names[1:]) else tuple(names)
