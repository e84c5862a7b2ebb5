"""Transposes moved behind what does not mind them, so that they meet and cancel.

Front ends bring channels to the end for a product and back behind it, or heads before rows; what
lies between two such products is often element-wise. Here each operator that can is applied to what
a transpose reads, and the transpose follows it. Where that leaves as many movements as before, the
graph stays as it was.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from opkit.dtypes import find_dtype

from ..ir import Graph, Node, Settings, Shape, Tensor, Value, is_one, normal_axes
from ..ops import OPERATORS
from .rewrite import Rebuilder

__all__ = ["join_slices", "movements", "sink_casts", "sink_transposes"]

Axes = tuple[int, ...]
_FREE = ("reshape", "broadcast_to")
_MOST_JOINED = 16
"""Boxes that one kernel copies."""


def movements(graph: Graph) -> int:
    """Return how many kernels only move elements."""
    return sum(
        OPERATORS[node.operator].kind == "movement" and node.operator not in _FREE
        for node in graph.nodes
    )


def sink_transposes(graph: Graph) -> Graph:
    """Return the graph with transposes as far behind as they go."""
    if not any(node.operator == "transpose" for node in graph.nodes):
        return graph
    work = _Sinker(graph)
    return work.rebuilt(work.sunk)


class _Sinker(Rebuilder):
    def __init__(self, graph: Graph) -> None:
        super().__init__(graph)
        self._turned: dict[str, tuple[Value, Axes]] = {}

    def sunk(self, node: Node, inputs: Sequence[Value]) -> Value | None:
        """Return an operator's value with the transpose behind it; None where that cannot be."""
        if node.operator == "transpose":
            return self._transposed(inputs[0], _ints(node.settings["axes"]))
        row = OPERATORS[node.operator]
        if row.kind == "elementwise":
            return self._elementwise(node, inputs)
        settings = Settings(node.attributes)
        found = self._turned.get(inputs[0].tensor.name) if inputs else None
        if found is None:
            return None
        before, axes = found
        if node.operator == "slice":
            settings["axis"] = axes[_axis(settings["axis"], len(axes))]
        elif node.operator == "pad":
            widths = settings["widths"]
            settings["widths"] = tuple(widths[axes.index(at)] for at in range(len(axes)))
        elif row.kind == "reduction" and settings.get("keepdims"):
            given = settings["axis"]
            own = sorted(axes[at] for at in normal_axes(given, len(axes)))
            if own != list(range(own[0], own[0] + len(own))):
                return None
            settings["axis"] = tuple(own)
        elif node.operator == "concat":
            parts = [self._before(value, axes) for value in inputs]
            if any(part is None for part in parts):
                return None
            settings["axis"] = axes[_axis(settings["axis"], len(axes))]
            joined = self.builder.apply("concat", *(p for p in parts if p is not None), **settings)
            return self._transposed(joined, axes)
        else:
            return None
        return self._transposed(self.builder.apply(node.operator, before, **settings), axes)

    def _elementwise(self, node: Node, inputs: Sequence[Value]) -> Value | None:
        shape = node.output.shape
        leading = next(
            (self._turned[each.tensor.name] for each in inputs if each.tensor.name in self._turned),
            None,
        )
        if leading is None or len(leading[1]) != len(shape):
            return None
        parts = [self._before(value, leading[1]) for value in inputs]
        if any(part is None for part in parts):
            return None
        result = self.builder.apply(
            node.operator, *(p for p in parts if p is not None), **dict(node.attributes)
        )
        return self._transposed(result, leading[1])

    def _before(self, value: Value, axes: Axes) -> Value | None:
        """Return what a transpose of these axes reads to give a value, without moving elements."""
        if value.ndim == 0:
            return value
        found = self._turned.get(value.tensor.name)
        if found is not None and found[1] == axes:
            return found[0]
        wide: Shape = (*((1,) * (len(axes) - value.ndim)), *value.shape)
        before: list[Any] = [1] * len(axes)
        for at, axis in enumerate(axes):
            before[axis] = wide[at]
        if not _is_reshape(wide, axes):
            return None
        return value.reshape(*before)

    def _transposed(self, value: Value, axes: Axes) -> Value:
        earlier = self._turned.get(value.tensor.name)
        if earlier is not None:
            value, first = earlier
            axes = tuple(first[at] for at in axes)
        if axes == tuple(range(len(axes))):
            return value
        wide = tuple(value.shape[at] for at in axes)
        if _is_reshape(wide, axes):
            return value.reshape(*wide)
        result = value.transpose(*axes)
        self._turned[result.tensor.name] = (value, axes)
        return result


def _is_reshape(result: Shape, axes: Axes) -> bool:
    """Whether a transpose with this result leaves the elements in their order."""
    moved = [axes[at] for at, extent in enumerate(result) if not is_one(extent)]
    return moved == sorted(moved)


def _axis(axis: Any, rank: int) -> int:
    return int(axis) % rank


def _ints(axes: Any) -> Axes:
    return tuple(int(each) for each in axes)


def sink_casts(graph: Graph) -> Graph:
    """Return the graph with casts that narrow what a vector kernel computes before the change of
    shape that only they read: they are that kernel's work, and fewer bytes are written."""
    work = Rebuilder(graph)
    returned = {tensor for _, tensor in graph.outputs}

    def rule(node: Node, inputs: Sequence[Value]) -> Value | None:
        if node.operator != "cast":
            return None
        seen = graph.producers.get(node.inputs[0])
        if seen is None or seen.operator != "reshape":
            return None
        name = seen.inputs[0]
        source = graph.producers.get(name)
        if source is None or OPERATORS[source.operator].kind not in ("elementwise", "reduction"):
            return None
        alone = [len(graph.users[each]) == 1 for each in (seen.output.name, name)]
        if not all(alone) or returned & {seen.output.name, name}:
            return None
        if _element_bytes(node.output) > _element_bytes(source.output) or "int64" in (
            source.output.dtype,
            node.output.dtype,
        ):
            return None
        return work.values[name].astype(node.output.dtype).reshape(*node.output.shape)

    return work.rebuilt(rule)


def _element_bytes(tensor: Tensor) -> int:
    row = find_dtype(tensor.dtype)
    assert row is not None
    return row.size_bytes


def join_slices(graph: Graph) -> Graph:
    """Return the graph with slices that are put side by side cut by the kernel that does it."""
    work = Rebuilder(graph)
    return work.rebuilt(lambda node, inputs: _joined(work, node, inputs))


def _joined(work: Rebuilder, node: Node, inputs: Sequence[Value]) -> Value | None:
    if node.operator != "concat":
        return None
    rank = len(node.output.shape)
    sizes = [extent for value in inputs for extent in value.shape]
    if len(inputs) > _MOST_JOINED or not all(isinstance(each, int) for each in sizes):
        return None
    parts: list[Value] = []
    cuts: list[tuple[Any, ...]] = []
    for name, value in zip(node.inputs, inputs, strict=True):
        before = work.graph.producers.get(name)
        if before is None or before.operator != "slice" or value.dtype != node.output.dtype:
            parts.append(value)
            cuts.append((0, 0, 1, value.shape[0]))
            continue
        axis = _axis(before.settings["axis"], rank)
        parts.append(work.values[before.inputs[0]])
        cuts.append((axis, before.settings["start"], before.settings["step"], value.shape[axis]))
    if all(part is value for part, value in zip(parts, inputs, strict=True)):
        return None
    axis = _axis(node.settings["axis"], rank)
    return work.builder.apply("concat_slices", *parts, axis=axis, cuts=tuple(cuts))
