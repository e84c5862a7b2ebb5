"""Which nodes of a graph opkit compiles, and why not the others."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import fx
from torch.fx.passes.infra.partitioner import CapabilityBasedPartitioner
from torch.fx.passes.operator_support import OperatorSupportBase

from opkit import log
from opkit.chips import Chip
from opkit.compiler import Location
from opkit.errors import OpkitError
from opkit.graph.planning import plan_of
from opkit.graph.translation import (
    Unbounded,
    does_nothing,
    is_view,
    line_of,
    operator_name,
    translate,
)

__all__ = ["Cut", "Left", "alone", "cut", "halved", "outputs_of"]


@dataclass(frozen=True)
class Left:
    """A node that torch runs."""

    node: str
    operator: str
    reason: str
    location: Location | None
    is_view: bool = False
    """Whether it takes no kernel either way."""


class Support(OperatorSupportBase):
    """Says which nodes can be compiled, by compiling each alone as far as its text."""

    def __init__(self, chip: Chip) -> None:
        self.chip = chip
        self.without: dict[str, str] = {}
        """Nodes that are left out whatever they are, and why."""
        self.reasons: dict[str, str] = {}
        """Reasons of the nodes that have no kernel, by name."""
        self._known: dict[tuple[object, ...], str] = {}

    def is_node_supported(self, submodules: Mapping[str, torch.nn.Module], node: fx.Node) -> bool:
        if node.op != "call_function":
            return False
        if node.name in self.without:
            self.reasons[node.name] = self.without[node.name]
            return False
        if node.target is operator.getitem:
            source = node.args[0]
            return isinstance(source, fx.Node) and self.is_node_supported(submodules, source)
        key = _signature(node)
        if key not in self._known:
            self._known[key] = self._reason(node)
        if self._known[key]:
            self.reasons[node.name] = self._known[key]
        return not self._known[key]

    def _reason(self, node: fx.Node) -> str:
        """Return why a node cannot be compiled; an empty text where it can."""
        nodes, wanted = alone(node)
        if not wanted:
            return "nothing reads it"
        for each in (*wanted, *node.all_input_nodes):
            value = each.meta.get("val")
            if isinstance(value, torch.Tensor) and not _has_known_size(value):
                return f"the size of {each.name} depends on values"
        for each in wanted:
            value = each.meta.get("val")
            if isinstance(value, torch.Tensor) and value.numel() == 0:
                return "it has no elements"
        for source in node.all_input_nodes:
            value = source.meta.get("val")
            if isinstance(value, torch.Tensor) and value.numel() == 0:
                return f"{source.name} has no elements"
        try:
            plan_of(translate(nodes, wanted, "alone", takes_int64=True).graph, self.chip)
        except OpkitError as err:
            message = str(getattr(err, "message", err)).splitlines()[0]
            return message.removeprefix(f"{node.name} ({operator_name(node)}): ").removeprefix(
                f"{node.name}: "
            )
        except (AssertionError, LookupError, NotImplementedError, TypeError, ValueError) as err:
            # A mistake of ours must not keep a model from running.
            log.warning("GRAPH", "the compiler fails on a node", node=node.name, error=repr(err))
            return f"opkit's compiler fails on it: {err!r}"
        return ""


def _has_known_size(tensor: torch.Tensor) -> bool:
    return all(isinstance(extent, int) for extent in (*tensor.shape, *tensor.stride()))


def alone(node: fx.Node) -> tuple[list[fx.Node], list[fx.Node]]:
    """Return a node with those that take its results apart, and which of them others read."""
    nodes = [node, *(user for user in node.users if user.target is operator.getitem)]
    outputs = nodes[1:] if _gives_several(node) else nodes[:1]
    return nodes, [each for each in outputs if each.users]


def _signature(node: fx.Node) -> tuple[object, ...]:
    def described(value: Any) -> object:
        if isinstance(value, fx.Node):
            tensor = value.meta.get("val")
            if isinstance(tensor, torch.Tensor):
                return (str(tensor.dtype), tuple(str(extent) for extent in tensor.shape))
            return str(tensor)
        if isinstance(value, list | tuple):
            return tuple(described(each) for each in value)
        return repr(value)

    used = tuple(
        user.args[1] if user.target is operator.getitem and user.users else None
        for user in node.users
    )
    return (
        str(node.target),
        described(node.args),
        described(tuple(node.kwargs.items())),
        used if isinstance(node.meta.get("val"), tuple | list) else None,
        any(node.users),
    )


@dataclass
class Cut:
    """A graph's nodes, parted."""

    segments: list[list[fx.Node]]
    """Those that are compiled together, in order."""
    left: list[Left] = field(default_factory=list)


def cut(module: fx.GraphModule, chip: Chip, *, smallest: int = 1) -> Cut:
    """Return the sub-graphs worth compiling, and what torch runs.

    Args:
        smallest: nodes that do work, fewer of which are not worth a sub-graph.
    """
    support = Support(chip)
    while True:
        found = _cut(module, support, smallest)
        try:
            for nodes in found.segments:
                translate(nodes, outputs_of(nodes), "segment", takes_int64=True)
        except Unbounded as err:
            # Among others it reads larger numbers than alone.
            support.without[err.node] = err.message.removeprefix(f"{err.node}: ")
        except OpkitError:
            return found
        else:
            return found


def _cut(module: fx.GraphModule, support: Support, smallest: int) -> Cut:
    partitioner = CapabilityBasedPartitioner(module, support, allows_single_node_partition=True)
    order = {node: index for index, node in enumerate(module.graph.nodes)}
    segments, small = [], set()
    for partition in partitioner.propose_partitions():
        nodes = _trimmed(sorted(partition.nodes, key=order.__getitem__))
        if sum(not is_view(node) for node in nodes) >= max(1, smallest):
            segments.append(nodes)
        else:
            small.update(nodes)
    segments.sort(key=lambda nodes: order[nodes[0]])
    inside = {node for nodes in segments for node in nodes}
    left = []
    for node in module.graph.nodes:
        if node.op in ("placeholder", "output", "get_attr") or node in inside:
            continue
        if does_nothing(node):
            continue
        reason = support.reasons.get(node.name, "")
        if not reason:
            reason = "too small a sub-graph" if node in small and not is_view(node) else "a view"
        left.append(Left(node.name, operator_name(node), reason, line_of(node), is_view(node)))
    return Cut(segments, left)


def _trimmed(nodes: list[fx.Node]) -> list[fx.Node]:
    """Return nodes without the views at their end: torch has them for nothing."""
    inside = set(nodes)
    changed = True
    while changed:
        changed = False
        for node in list(inside):
            is_last = not any(user in inside for user in node.users)
            single = not isinstance(node.meta.get("val"), tuple | list)
            if is_last and is_view(node) and single and not does_nothing(node):
                source = node.args[0]
                if isinstance(source, fx.Node) and not _gives_several(source):
                    inside.discard(node)
                    changed = True
    return [node for node in nodes if node in inside]


def halved(nodes: list[fx.Node]) -> list[list[fx.Node]]:
    """Return the two halves of a sub-graph in order, without the views at their ends; nothing where
    one of them would do no work."""
    first = set(nodes[: len(nodes) // 2])
    first |= {node for node in nodes if does_nothing(node) and node.args[0] in first}
    halves = [
        _trimmed([node for node in nodes if (node in first) == is_first])
        for is_first in (True, False)
    ]
    does_work = all(any(not is_view(node) for node in half) for half in halves)
    return halves if does_work else []


def _gives_several(node: fx.Node) -> bool:
    return isinstance(node.meta.get("val"), tuple | list)


def outputs_of(nodes: list[fx.Node]) -> list[fx.Node]:
    """Return the nodes whose results others need."""
    return list(_outputs(nodes))


def _outputs(nodes: list[fx.Node]) -> Iterator[fx.Node]:
    inside = set(nodes)
    for node in nodes:
        if any(user not in inside for user in node.users) and not _gives_several(node):
            yield node
