"""Which operators share a kernel."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from opkit.dtypes import find_dtype

from ..ir import Graph, Node, Tensor, charge, pieces_of, same
from ..ops import OPERATORS
from .domain import UnfusableError, Window, domain_of
from .waiting import are_between, in_running_order, needs

__all__ = ["FusedGraph", "Group", "fuse", "is_uniform_node"]

_SOURCES = ("constant", "attribute", "extent")


@dataclass(frozen=True)
class Group:
    """The nodes of one kernel, in order."""

    name: str
    kind: str
    """`vector`, `matmul`, `view` (no work at all), or the operator's own name."""
    nodes: tuple[Node, ...]
    why: str = ""
    """Why it is not part of the group before it."""
    before: tuple[Group, ...] = ()
    """What the same kernel does first: `vector` groups and views that lead to what a product
    multiplies. `nodes` are without theirs."""

    @cached_property
    def all_nodes(self) -> tuple[Node, ...]:
        """All nodes of the kernel, in order."""
        return (*(node for part in self.before for node in part.nodes), *self.nodes)


@dataclass(frozen=True)
class FusedGraph:
    """A graph and its partition into kernels, in an order in which they can run."""

    graph: Graph
    groups: tuple[Group, ...]
    one_row: frozenset[str] = frozenset()
    """Inputs of which a launch may give one row for all."""
    windows: Mapping[str, Window] = field(default_factory=dict)
    """Tensors that kernels read or write as parts of others, and that have no kernels of their own:
    see `place_windows`."""
    is_planned: bool = False
    """Its launches come from a plan, which knows all sizes: loops may be in another order than
    tensors' axes."""

    def inputs_of(self, group: Group) -> tuple[str, ...]:
        """Return the tensors that a group's own nodes read from memory; numbers come with the
        launch."""
        return self._read_by(group.nodes)

    def operands_of(self, group: Group) -> tuple[str, ...]:
        """Return the tensors that a whole kernel reads and does not compute."""
        return self._read_by(group.all_nodes)

    def _read_by(self, nodes: Sequence[Node]) -> tuple[str, ...]:
        defined = {node.output.name for node in nodes}
        names = dict.fromkeys(name for node in nodes for name in node.inputs)
        return tuple(name for name in names if name not in defined | self.uniform)

    def outputs_of(self, group: Group) -> tuple[str, ...]:
        """Return the tensors of a group's own nodes that others read, those of its kernel among
        them, or that the program returns."""
        return self._wanted_of(group.nodes, [group])

    def results_of(self, group: Group) -> tuple[str, ...]:
        """Return the tensors that a whole kernel leaves for others or that the program returns."""
        return self._wanted_of(group.all_nodes, [group, *group.before])

    def _wanted_of(self, nodes: Sequence[Node], groups: Sequence[Group]) -> tuple[str, ...]:
        """Return what of some nodes the program returns, or any but these groups read."""
        own = {id(group) for group in groups}
        names = (node.output.name for node in nodes)
        return tuple(
            name
            for name in names
            if name in self._returned
            or name in self.windows
            or self._readers.get(name, set()) - own
        )

    @cached_property
    def _returned(self) -> frozenset[str]:
        return frozenset(tensor for _, tensor in self.graph.outputs)

    @cached_property
    def _readers(self) -> dict[str, set[int]]:
        """The groups that read each tensor, by identity: of two that are equal each is one."""
        found: dict[str, set[int]] = {}
        for kernel in self.groups:
            for part in (*kernel.before, kernel):
                for node in part.nodes:
                    for name in node.inputs:
                        found.setdefault(name, set()).add(id(part))
                        if name in self.windows:
                            found.setdefault(self.windows[name].base, set()).add(id(part))
        return found

    @cached_property
    def uniform(self) -> frozenset[str]:
        """The tensors that are single numbers which the host computes."""
        found: set[str] = set()
        for node in self.graph.nodes:
            if is_uniform_node(node, found):
                found.add(node.output.name)
        return frozenset(found)

    def __str__(self) -> str:
        lines = []
        for group in self.groups:
            lines.append(f"kernel {group.name} ({group.kind})")
            if group.why:
                lines.append(f"    separate: {group.why}")
            for part in group.before:
                lines.append(f"    first {part.name} ({part.kind})")
                lines += [f"        {node}" for node in part.nodes]
            lines += [f"    {node}" for node in group.nodes]
        return "\n".join(lines)


def is_uniform_node(node: Node, known: set[str] | frozenset[str]) -> bool:
    """Return whether the host computes a node: a number made of numbers."""
    if node.operator in _SOURCES:
        return True
    return (
        not node.output.shape
        and OPERATORS[node.operator].kind == "elementwise"
        and all(name in known for name in node.inputs)
    )


def fuse(graph: Graph, *, apart: bool = False) -> FusedGraph:
    """Return the graph with each node in one kernel; `apart`: each in one of its own.

    Element-wise operators and reductions along one axis join the kernel of what they read where
    one nest of loops computes both; what a kernel would have to wait for in another kernel stays
    outside of it.
    """
    lasting = {tensor for _, tensor in graph.outputs}
    for times in itertools.count(1):
        fused = _fused(graph, frozenset(lasting), apart)
        wrong = {
            name
            for group in fused.groups
            if group.kind == "vector"
            for name in fused.outputs_of(group)
            if not domain_of(graph, group.nodes).is_written_once(name)
        }
        # A product that is also read as it is does not stay in the cube's hands.
        wrong |= {
            group.nodes[0].output.name
            for group in fused.groups
            if group.kind == "matmul"
            and len(group.nodes) > 1
            and group.nodes[0].output.name in fused.outputs_of(group)
        }
        if wrong <= lasting:
            return fused
        if times >= _FEW_TIMES:
            # Rounds of a loop would be found one at a time: the next copy of a node is as wrong.
            keys = {_copy_key(graph, graph.producers[name]) for name in wrong - lasting}
            wrong |= {n.output.name for n in graph.nodes if _copy_key(graph, n) in keys}
        lasting |= wrong
    raise AssertionError("a partition is found where nothing is computed twice")


def _fused(graph: Graph, lasting: frozenset[str], apart: bool) -> FusedGraph:
    """Return a partition in which no tensor of `lasting` is computed more than once."""
    uniform: set[str] = set()
    building: list[tuple[str, list[Node], str]] = []
    home: dict[str, int] = {}
    reads: list[set[int]] = []
    for node in graph.nodes:
        if is_uniform_node(node, uniform):
            uniform.add(node.output.name)
            continue
        kind = _kind(node)
        producers = sorted({home[name] for name in node.inputs if name in home})
        index: int | None = None
        why = "operators were asked to be apart" if producers else ""
        if not apart:
            index, why = _join(graph, node, kind, producers, building, reads, lasting)
        if index is None:
            building.append((kind, [node], why))
            reads.append(set())
            index = len(building) - 1
        else:
            building[index][1].append(node)
        reads[index].update(each for each in producers if each != index)
        home[node.output.name] = index
    if not apart:
        building, home = _merge(graph, building, home, lasting)
    groups = []
    for position, index in enumerate(in_running_order(_reads(building, home))):
        kind, nodes, why = building[index]
        if len(nodes) == 1 and _repeats_elements(graph, nodes[0]):
            kind = nodes[0].operator
        name = graph.name if len(building) == 1 else f"{graph.name}_{position}"
        groups.append(Group(name, kind, tuple(nodes), why))
    return FusedGraph(graph, tuple(groups))


_MOST_REPEATS = 16


def _repeats_elements(graph: Graph, node: Node) -> bool:
    """Return whether each element comes a few times in a row: loops would run over rows of these,
    a movement gathers long ones."""
    dtype = find_dtype(node.output.dtype)
    if node.operator != "broadcast_to" or dtype is None or dtype.size_bytes not in (2, 4):
        return False
    (source,), shape = graph.inputs_of(node), node.output.shape
    if not all(isinstance(extent, int) for extent in (*source.shape, *shape)):
        return False
    pieces = pieces_of(node.operator, {}, [source.shape], shape)
    if not pieces or len(pieces[0].axes) < 2:
        return False
    (count, step, _), (repeats, inner_step, _) = pieces[0].axes[-2:]
    return bool(inner_step == 0 and repeats <= _MOST_REPEATS <= count and step == 1)


_MOST_READ = 32
"""Tensors that one kernel reads: the tiles of many more do not lie in the unified buffer."""


_MANY_NODES = 96
"""Nodes after which a kernel ends where another copy of its first node comes, at the latest after
twice as many: rounds of a loop that are written out become kernels alike, compiled once, in place
of a text as long as the loop."""


def _is_full(graph: Graph, nodes: Sequence[Node], node: Node) -> bool:
    """Return whether a kernel of so many nodes takes no further one."""
    if len(nodes) < _MANY_NODES:
        return False
    return len(nodes) >= 2 * _MANY_NODES or _copy_key(graph, nodes[0]) == _copy_key(graph, node)


def _copy_key(graph: Graph, node: Node) -> tuple[object, ...]:
    """Return what copies of a node have in common: all but which tensors they read."""
    read = tuple(graph.tensors[name] for name in node.inputs)
    operands = tuple(each.name if each.is_constant else each.shape for each in read)
    output = node.output
    return node.operator, node.location, node.attributes, output.shape, output.dtype, operands


_FEW_TIMES = 4
"""How often a partition is corrected tensor by tensor."""


def _check_loops(graph: Graph, nodes: Sequence[Node], lasting: frozenset[str]) -> None:
    """Refuse loops that would compute a tensor that others read more than once, or read too many
    tensors."""
    charge(nodes[-1].location)
    own = {node.output.name for node in nodes}
    read = {name for node in nodes for name in node.inputs if graph.tensors[name].shape} - own
    if len(nodes) > 1 and any(_is_wide(graph, node) for node in nodes):
        raise UnfusableError("a kernel of its own makes int32 of int64, or int64 of int32")
    if len(read) > _MOST_READ:
        raise UnfusableError(f"one kernel would read {len(read)} tensors")
    domain = domain_of(graph, nodes)
    for node in nodes:
        if node.output.name in lasting and not domain.is_written_once(node.output.name):
            raise UnfusableError(f"{node.output.name} would be written more than once")


def _is_wide(graph: Graph, node: Node) -> bool:
    """Return whether a node reads or writes elements of 8 bytes, which the buffers of numbers that
    a loop keeps have no room for."""
    return any(tensor.dtype == "int64" for tensor in (node.output, *graph.inputs_of(node)))


def _kind(node: Node) -> str:
    row = OPERATORS[node.operator]
    if row.kind in ("elementwise", "reduction"):
        return "vector"
    if node.operator in ("reshape",):
        return "view"
    # One kernel sorts, whether values are wanted, or places, or both.
    if node.operator == "argsort":
        return "sort"
    # "broadcast_to" computes nothing, and comes for nothing in the loops of what reads it.
    return "vector" if node.operator == "broadcast_to" else node.operator


def _join(
    graph: Graph,
    node: Node,
    kind: str,
    producers: Sequence[int],
    building: Sequence[tuple[str, list[Node], str]],
    reads: Sequence[set[int]],
    lasting: frozenset[str],
) -> tuple[int | None, str]:
    """Return the kernel that a node joins, or why it begins another."""
    if kind == "sort":
        for index, (_, (first, *_), _) in enumerate(building):
            if _kind(first) == kind and _sorts_alike(first, node):
                return index, ""
    if kind != "vector":
        return None, f"{node.operator} is a kernel of its own" if producers else ""
    why = ""
    # What has an element for each of a product's is that kernel's work, before that of one which
    # gives it a row or a column.
    products = [index for index in producers if building[index][0] == "matmul"]
    others = [index for index in producers if index not in products]
    is_narrow = not any(
        _has_shape_of(each.output, node.output) for at in others for each in building[at][1]
    )
    for index in reversed([*others, *products] if is_narrow else producers):
        if building[index][0] == "matmul":
            fits, reason = _finishes(graph, node, building[index][1], lasting)
            later = [other for other in producers if other != index]
            if fits and not needs(reads, later, [index]):
                return index, ""
            why = why or reason or "it also reads what waits for that product"
            continue
        if building[index][0] != "vector":
            why = why or f"it reads what {building[index][1][0].operator} gives"
            continue
        if _is_full(graph, building[index][1], node):
            why = why or f"that kernel has {len(building[index][1])} operators"
            continue
        # Everything else that it reads must be computed before that kernel begins.
        if needs(reads, [other for other in producers if other != index], [index]):
            why = why or "it also reads what waits for that kernel"
            continue
        try:
            _check_loops(graph, [*building[index][1], node], lasting)
        except UnfusableError as err:
            why = why or err.message
            continue
        return index, ""
    return None, why


def _sorts_alike(first: Node, second: Node) -> bool:
    return first.inputs == second.inputs and first.attributes == second.attributes


def _finishes(
    graph: Graph, node: Node, nodes: Sequence[Node], lasting: frozenset[str]
) -> tuple[bool, str]:
    """Return whether the vector cores can apply a node to a product's blocks as the cube hands them
    over, or why not."""
    product = nodes[0].output
    if product.name in lasting:
        return False, f"{product.name} is also read as it is"
    if OPERATORS[node.operator].kind == "reduction":
        return False, "a block that the cube hands over is no whole row"
    if _is_wide(graph, node):
        return False, "a kernel of its own makes int64 of int32"
    own = {each.output.name for each in nodes}
    for name in node.inputs:
        if name in own and not _has_shape_of(graph.tensors[name], product):
            return False, f"{name} does not have an element for each of the product's"
    if not _has_shape_of(node.output, product):
        return False, f"{node.output.name} does not have an element for each of the product's"
    return True, ""


def _has_shape_of(tensor: Tensor, product: Tensor) -> bool:
    return len(tensor.shape) == len(product.shape) and all(
        same(a, b) for a, b in zip(tensor.shape, product.shape, strict=True)
    )


def _merge(
    graph: Graph,
    building: list[tuple[str, list[Node], str]],
    home: dict[str, int],
    lasting: frozenset[str],
) -> tuple[list[tuple[str, list[Node], str]], dict[str, int]]:
    """Join kernels that run in the same loops where neither waits for the other through a third."""
    # What cannot be joined once cannot be joined later: kernels only grow, and are known by their
    # first node and how many they have.
    refused: set[tuple[str, int, str, int]] = set()
    while (pair := _joinable(graph, building, home, lasting, refused)) is not None:
        left, right = pair
        nodes = _in_order(graph, [*building[left][1], *building[right][1]])
        building[left] = ("vector", nodes, building[left][2])
        del building[right]
        home = {
            node.output.name: index
            for index, (_, nodes, _) in enumerate(building)
            for node in nodes
        }
    return building, home


def _joinable(
    graph: Graph,
    building: Sequence[tuple[str, list[Node], str]],
    home: dict[str, int],
    lasting: frozenset[str],
    refused: set[tuple[str, int, str, int]],
) -> tuple[int, int] | None:
    """Return the first two kernels that run in the same loops, touch a common tensor, which joining
    them saves a copy of, and do not wait for each other through a third."""
    reads = _reads(building, home)
    touching: dict[str, list[int]] = {}
    for right, (kind, nodes, _) in enumerate(building):
        if kind != "vector":
            continue
        names = {n for node in nodes for n in node.inputs} | {n.output.name for n in nodes}
        names = {name for name in names if graph.tensors[name].shape}
        for left in sorted({index for name in names for index in touching.get(name, ())}):
            others = building[left][1]
            key = (others[0].output.name, len(others), nodes[0].output.name, len(nodes))
            is_long = max(len(others), len(nodes)) >= _MANY_NODES
            if key in refused or is_long or are_between(reads, left, right):
                continue
            try:
                _check_loops(graph, _in_order(graph, [*others, *nodes]), lasting)
            except UnfusableError:
                refused.add(key)
                continue
            return left, right
        for name in names:
            touching.setdefault(name, []).append(right)
    return None


def _in_order(graph: Graph, nodes: Sequence[Node]) -> list[Node]:
    wanted = {node.output.name for node in nodes}
    return [node for node in graph.nodes if node.output.name in wanted]


def _reads(building: Sequence[tuple[str, list[Node], str]], home: dict[str, int]) -> list[set[int]]:
    found = []
    for index, (_, nodes, _) in enumerate(building):
        found.append({home[n] for node in nodes for n in node.inputs if n in home} - {index})
    return found
