"""Reductions to few numbers, shared by more cores than there are numbers.

A kernel gives a row to one core, or a few columns. Where that leaves most cores without work, the
elements are seen as more rows, whose results a second, short kernel reduces.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..ir import Graph, Node, Value
from ..ops import OPERATORS
from .rewrite import Rebuilder

__all__ = ["share_reductions"]

_LEAST_ELEMENTS = 1 << 17
"""Below these a second launch takes longer than what it saves."""
_JOINS = {"sum": "add", "max": "maximum", "min": "minimum"}
_FOLDS = tuple(_JOINS)
_COLUMNS = 64
"""That a core takes at least, from top to bottom."""


def share_reductions(graph: Graph, cores: int, *, is_planned: bool = False) -> Graph:
    """Return the graph with reductions of fixed sizes whose results are few in two steps.

    Results that go back to as many elements as there were stay in one kernel with these. Sums of 16
    bits are shared where they are of an input or a cast: between the steps they are float32.

    Args:
        graph: the program.
        cores: that share a reduction.
        is_planned: kernels read parts of tensors, so that parts of one length may leave a rest.
    """
    work = _Sharer(graph, cores, is_planned)
    return work.rebuilt(work.shared) if work.cuts else graph


class _Sharer(Rebuilder):
    def __init__(self, graph: Graph, cores: int, is_planned: bool) -> None:
        super().__init__(graph)
        self._cores = cores
        self._is_planned = is_planned
        self._known: dict[tuple[str, int, tuple[int, ...]], Value] = {}
        found = ((node.output.name, self._split(node)) for node in graph.nodes)
        self.cuts = {name: cut for name, cut in found if cut is not None}
        """What `_split` returns for each reduction that is to be shared."""

    def shared(self, node: Node, inputs: Sequence[Value]) -> Value | None:
        """Return a reduction in two steps; None for what stays as it is."""
        cut = self.cuts.get(node.output.name)
        if cut is None:
            return None
        before, parts, each, behind, rest = cut
        behind_shape = () if behind == 1 else (behind,)
        own = self._own(node)

        def folded(begin: int, shape: tuple[int, ...]) -> Value:
            value = self._seen(node.inputs[0], begin, (*shape, *behind_shape), own)
            if node.operator == "sum" and value.dtype != "float32":
                value = value.astype("float32")
            return value.apply(node.operator, axis=len(shape) - 1, keepdims=True)

        value = folded(0, (before, parts, each)).reshape(before, parts, *behind_shape)
        value = value.apply(node.operator, axis=1, keepdims=True)
        if rest:
            # Fewer than there are parts: no part is longer for them.
            value = value.apply(_JOINS[node.operator], folded(parts * each, (before, rest)))
        if value.dtype != node.output.dtype:
            value = value.astype(node.output.dtype)
        shape = tuple(n for n in node.output.shape if isinstance(n, int))
        return _reshaped(value, shape)

    def _split(self, node: Node) -> tuple[int, int, int, int, int] | None:
        """Return what lies before the reduced elements, into how many parts of how many these are
        cut, what lies behind, and how many no part has; None where one step serves."""
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
        axes = node.settings.axes(len(shape))
        before, behind = math.prod(shape[: axes[0]]), math.prod(shape[axes[-1] + 1 :])
        length = math.prod(shape) // (before * behind)
        units = before * -(-behind // _COLUMNS)
        if 2 * units > self._cores or self._goes_back(node, math.prod(shape)):
            return None
        most = self._cores // units
        found = [n for n in range(2, most + 1) if length % n == 0]
        if self._is_planned and before == 1 and (not found or 2 * found[-1] < most):
            return before, most, length // most, behind, length % most
        if not found or found[-1] * units < 4:
            return None
        return before, found[-1], length // found[-1], behind, 0

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

    def _seen(self, name: str, begin: int, shape: tuple[int, ...], own: frozenset[str]) -> Value:
        """Return a value in another shape, or a part of it from one of its reduced elements on;
        what is `own` is computed in that shape."""
        key = (name, begin, shape)
        if key not in self._known:
            if name in own:
                node = self.graph.producers[name]
                inputs = [
                    self._seen(tensor.name, begin, shape, own)
                    if tensor.shape == node.output.shape
                    else _reshaped(self.values[tensor.name], ())
                    for tensor in self.graph.inputs_of(node)
                ]
                made = self.builder.apply(node.operator, *inputs, **dict(node.attributes))
            else:
                made = _part(self.values[name], begin, shape)
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


def _part(value: Value, begin: int, shape: tuple[int, ...]) -> Value:
    """Return elements of a value, which lie together, in another shape."""
    size = math.prod(n for n in value.shape if isinstance(n, int))
    count = math.prod(shape)
    if count == size:
        return value.reshape(*shape)
    behind = math.prod(shape[3:]) if begin == 0 else math.prod(shape[2:])
    whole = value.reshape(size // behind, behind)
    part = whole.apply("slice", axis=0, start=begin, stop=begin + count // behind, step=1)
    return part.reshape(*shape)


def _reshaped(value: Value, shape: tuple[int, ...]) -> Value:
    return value if value.shape == shape else value.reshape(*shape)
