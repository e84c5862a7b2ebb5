"""Reductions to few numbers, shared by more cores than there are numbers.

A kernel gives a row to one core, or a few columns. Where that leaves most cores without work, the
elements are seen as more rows, whose results a second, short kernel reduces.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..ir import Graph, Node, Value, normal_axes
from ..ops import OPERATORS
from .rewrite import Rebuilder

__all__ = ["share_reductions"]

_LEAST_ELEMENTS = 1 << 17
"""Below these a second launch takes longer than what it saves."""
_FOLDS = ("sum", "max", "min")
_COLUMNS = 64
"""That a core takes at least, from top to bottom."""


def share_reductions(graph: Graph, cores: int) -> Graph:
    """Return the graph with reductions of fixed sizes whose results are few in two steps.

    Results that go back to as many elements as there were stay in one kernel with these. Sums of 16
    bits are shared where they are of an input or a cast: between the steps they are float32.
    """
    work = _Sharer(graph, cores)
    return work.rebuilt(work.shared) if work.cuts else graph


class _Sharer(Rebuilder):
    def __init__(self, graph: Graph, cores: int) -> None:
        super().__init__(graph)
        self._cores = cores
        self._known: dict[tuple[str, tuple[int, ...]], Value] = {}
        found = ((node.output.name, self._split(node)) for node in graph.nodes)
        self.cuts = {name: cut for name, cut in found if cut is not None}
        """Of each reduction that is to be shared: what `_split` returns."""

    def shared(self, node: Node, inputs: Sequence[Value]) -> Value | None:
        """Return a reduction in two steps; None for what stays as it is."""
        cut = self.cuts.get(node.output.name)
        if cut is None:
            return None
        before, parts, each, behind = cut
        behind_shape = () if behind == 1 else (behind,)
        value = self._seen(node.inputs[0], (before, parts, each, *behind_shape), self._own(node))
        if node.operator == "sum" and value.dtype != "float32":
            value = value.astype("float32")
        value = value.apply(node.operator, axis=2, keepdims=True)
        value = value.reshape(before, parts, *behind_shape)
        value = value.apply(node.operator, axis=1, keepdims=True)
        if value.dtype != node.output.dtype:
            value = value.astype(node.output.dtype)
        shape = tuple(n for n in node.output.shape if isinstance(n, int))
        return _reshaped(value, shape)

    def _split(self, node: Node) -> tuple[int, int, int, int] | None:
        """Return what lies before the reduced elements, into how many parts of how many these are
        cut, and what lies behind; None where one step serves."""
        if OPERATORS[node.operator].kind != "reduction" or node.operator not in _FOLDS:
            return None
        (source,) = self.graph.inputs_of(node)
        shape = [extent for extent in source.shape if isinstance(extent, int)]
        if len(shape) < len(source.shape) or math.prod(shape) < _LEAST_ELEMENTS:
            return None
        producer = self.graph.producers.get(source.name)
        is_rounded = producer is None or producer.operator == "cast"
        is_narrow = source.dtype in ("float16", "bfloat16") and node.operator == "sum"
        if source.dtype not in ("float32", "float16", "bfloat16") or (is_narrow and not is_rounded):
            return None
        axes = normal_axes(node.settings["axis"], len(shape))
        before, behind = math.prod(shape[: axes[0]]), math.prod(shape[axes[-1] + 1 :])
        length = math.prod(shape) // (before * behind)
        units = before * -(-behind // _COLUMNS)
        if 2 * units > self._cores or self._goes_back(node, math.prod(shape)):
            return None
        found = [n for n in range(2, self._cores // units + 1) if length % n == 0]
        if not found or found[-1] * units < 4:
            return None
        return before, found[-1], length // found[-1], behind

    def _goes_back(self, node: Node, size: int) -> bool:
        """Whether something of as many elements is computed from a result."""
        reached = {node.output.name}
        for each in self.graph.nodes:
            if reached.isdisjoint(each.inputs):
                continue
            reached.add(each.output.name)
            extents = each.output.shape
            if (
                not all(isinstance(n, int) for n in extents)
                or 4 * math.prod(n for n in extents if isinstance(n, int)) > size
            ):
                return True
        return False

    def _seen(self, name: str, shape: tuple[int, ...], own: frozenset[str]) -> Value:
        """Return a value in another shape; what is `own` is computed in that shape."""
        key = (name, shape)
        if key not in self._known:
            if name in own:
                node = self.graph.producers[name]
                inputs = [
                    self._seen(tensor.name, shape, own)
                    if tensor.shape == node.output.shape
                    else _reshaped(self.values[tensor.name], ())
                    for tensor in self.graph.inputs_of(node)
                ]
                made = self.builder.apply(node.operator, *inputs, **dict(node.attributes))
            else:
                made = self.values[name].reshape(*shape)
            self._known[key] = made
        return self._known[key]

    def _own(self, reduction: Node) -> frozenset[str]:
        """Return the element-wise work before a reduction that nothing else reads: in the shape of
        the reduction's rows it stays in its kernel."""
        given = {name for _, name in self.graph.outputs}
        found = {reduction.output.name}
        for node in reversed(self.graph.nodes):
            is_plain = OPERATORS[node.operator].kind == "elementwise" and all(
                tensor.shape == node.output.shape
                or math.prod(n for n in tensor.shape if isinstance(n, int)) == 1
                for tensor in self.graph.inputs_of(node)
            )
            name = node.output.name
            readers = [user.output.name for user in self.graph.users[name]]
            if is_plain and readers and name not in given and found.issuperset(readers):
                found.add(name)
        return frozenset(found - {reduction.output.name})


def _reshaped(value: Value, shape: tuple[int, ...]) -> Value:
    return value if value.shape == shape else value.reshape(*shape)
