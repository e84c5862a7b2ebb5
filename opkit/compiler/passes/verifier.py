"""Whether a graph, and its partition into kernels, is well formed: what every pass may rely on."""

from __future__ import annotations

from opkit.dtypes import find_dtype
from opkit.errors import UsageError

from ..ir import Graph, Node, same
from ..ops import OPERATORS
from .fusion import FusedGraph

__all__ = ["DamagedGraph", "check_fused", "check_graph"]

_NUMBERS = ("constant", "attribute", "extent")


class DamagedGraph(RuntimeError):
    """A pass has made a graph that is not well formed: opkit's mistake, not the user's."""

    def __init__(self, problem: str, *, after: str, tensor: str = "") -> None:
        """Take what is wrong, the pass after which it is, and the tensor that it is about."""
        super().__init__(f"after {after}: {problem}")
        self.problem, self.after, self.tensor = problem, after, tensor


def check_graph(graph: Graph, *, after: str) -> None:
    """Check that every tensor has one name, is made before it is read, is read or returned, and has
    the shape and the data type that its operator gives.

    Raises:
        DamagedGraph: that is not so.
    """
    known = {tensor.name for tensor in graph.inputs}
    if len(known) < len(graph.inputs):
        raise DamagedGraph("two inputs have one name", after=after)
    attributes = {each.name for each in graph.attributes}
    for tensor in (*graph.inputs, *(node.output for node in graph.nodes)):
        if find_dtype(tensor.dtype) is None:
            raise DamagedGraph(f"{tensor} has no data type", after=after, tensor=tensor.name)
    for node in graph.nodes:
        name = node.output.name
        if missing := [each for each in node.inputs if each not in known]:
            problem = f"{node} reads {missing[0]}, which nothing before it computes"
            raise DamagedGraph(problem, after=after, tensor=missing[0])
        if name in known:
            raise DamagedGraph(f"{name} is computed twice", after=after, tensor=name)
        known.add(name)
        if problem := _node_problem(graph, node):
            raise DamagedGraph(f"{node}: {problem}", after=after, tensor=name)
        if node.operator == "attribute" and node.settings["name"] not in attributes:
            problem = f"there is no attribute {node.settings['name']}"
            raise DamagedGraph(problem, after=after, tensor=name)
    for output, name in graph.outputs:
        if name not in known:
            problem = f"the output {output} is {name}, which nothing computes"
            raise DamagedGraph(problem, after=after, tensor=name)
    live = {node.output.name for node in graph.live_nodes()}
    for node in graph.nodes:
        if node.output.name not in live:
            problem = f"no output needs {node.output.name}"
            raise DamagedGraph(problem, after=after, tensor=node.output.name)


def _node_problem(graph: Graph, node: Node) -> str:
    """Return what is wrong with a node; empty where nothing is."""
    row = OPERATORS.get(node.operator)
    if row is None:
        return "there is no such operator"
    if row.arity is not None and len(node.inputs) != row.arity:
        return f"it takes {row.arity} tensors"
    if node.operator in _NUMBERS:
        return "" if not node.output.shape else "a single number has no axes"
    tensors = graph.inputs_of(node)
    try:
        settings = row.settings(node.settings)
        shape, dtype = row.shape(tensors, settings), row.dtype(tensors, settings)
    except UsageError as err:
        return err.message
    if dtype != node.output.dtype:
        return f"it gives {dtype}"
    given = node.output.shape
    if len(shape) != len(given) or not all(map(same, shape, given)):
        return f"it gives the shape {list(shape)}"
    return ""


def check_fused(fused: FusedGraph, *, after: str) -> None:
    """Check that each node that computes elements is in one kernel, and that kernels read what
    kernels before them have computed.

    Raises:
        DamagedGraph: that is not so.
    """
    ready = {tensor.name for tensor in fused.graph.inputs} | fused.uniform
    moved = [name for name in fused.windows if name not in ready]
    computed_there = {node.output.name for group in fused.groups for node in group.all_nodes}
    joined = {window.base for name, window in fused.windows.items() if name in computed_there}
    ready |= {name for name in moved if name not in computed_there} | joined
    for group in fused.groups:
        computed = set(ready)
        for node in group.all_nodes:
            name = node.output.name
            if missing := [each for each in node.inputs if each not in computed]:
                problem = f"kernel {group.name} reads {missing[0]} before it is computed"
                raise DamagedGraph(problem, after=after, tensor=missing[0])
            if name in computed:
                problem = f"kernel {group.name} computes {name} again"
                raise DamagedGraph(problem, after=after, tensor=name)
            computed.add(name)
        ready = computed
    for node in fused.graph.nodes:
        if node.output.name not in ready:
            problem = f"no kernel computes {node.output.name}"
            raise DamagedGraph(problem, after=after, tensor=node.output.name)
    names = [group.name for group in fused.groups]
    if len(set(names)) < len(names):
        raise DamagedGraph("two kernels have one name", after=after)
