"""Which nodes of a graph do the same at other places."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from ...ir import Graph, Node

__all__ = ["Run", "added", "inner_links", "kinds", "runs"]

LEAST_ROUNDS = 4
"""Fewer copies of a body are as well compiled one by one."""
_MOST_PHASES = 8
"""Tiles that one round writes side by side."""

# What the nodes of several rounds may differ in.
_OWN = {"slice": ("start", "stop"), "constant": ("value",)}


def kinds(graph: Graph) -> dict[str, int]:
    """Return a number for each tensor, equal for those that are computed alike: by the same
    operators of operands that are computed alike, but for where slices begin and for numbers."""
    known: dict[object, int] = {}

    def number(key: object) -> int:
        return known.setdefault(key, len(known))

    found = {tensor.name: number(("input", tensor.name)) for tensor in graph.inputs}
    for node in graph.nodes:
        own = _OWN.get(node.operator, ())
        settings = tuple((k, repr(v)) for k, v in node.attributes if k not in own)
        inputs = tuple(found[name] for name in node.inputs)
        output = node.output
        found[output.name] = number((node.operator, settings, inputs, output.shape, output.dtype))
    return found


class Run:
    """Parts of one list that repeat: `phases` parts a round, `count` rounds from `start` on."""

    def __init__(self, start: int, phases: int, count: int) -> None:
        self.start = start
        self.phases = phases
        self.count = count

    @property
    def stop(self) -> int:
        """The first part behind it."""
        return self.start + self.phases * self.count

    def rounds(self, names: Sequence[str]) -> list[tuple[str, ...]]:
        """Return each phase's tensors, round by round."""
        part = names[self.start : self.stop]
        return [tuple(part[phase :: self.phases]) for phase in range(self.phases)]


def runs(numbers: Sequence[int], most_phases: int = _MOST_PHASES) -> Iterator[Run]:
    """Yield the runs of a list of kinds that are long enough to be joined."""
    at = 0
    while at < len(numbers):
        best = None
        for phases in range(1, most_phases + 1):
            stop = at + phases
            while stop < len(numbers) and numbers[stop] == numbers[stop - phases]:
                stop += 1
            run = Run(at, phases, (stop - at) // phases)
            is_better = best is None or run.stop > best.stop
            if run.count >= LEAST_ROUNDS and is_better:
                best = run
        if best is not None:
            yield best
        at = at + 1 if best is None else best.stop


def inner_links(graph: Graph, operators: Collection[str]) -> set[str]:
    """Return the results of these operators that only the same operator reads, once."""
    outputs = {tensor for _, tensor in graph.outputs}
    found = set()
    for name, users in graph.users.items():
        node = graph.producers.get(name)
        if node is None or node.operator not in operators or name in outputs or len(users) != 1:
            continue
        (user,) = users
        if user.operator == node.operator and user.inputs.count(name) == 1:
            is_alike = user.output.shape == node.output.shape
            if is_alike and user.output.dtype == node.output.dtype:
                found.add(name)
    return found


def added(graph: Graph, node: Node, links: set[str]) -> list[str]:
    """Return what a chain of one operator takes, first to last."""
    parts: list[str] = []
    while True:
        first, other = node.inputs
        if first not in links:
            first, other = other, first
        if first not in links:
            return [*node.inputs, *reversed(parts)]
        parts.append(other)
        node = graph.producers[first]
