"""Transposes moved behind what does not mind them, so that they meet and cancel.

Front ends bring channels to the end for a product and back behind it, or heads before rows; what
lies between two such products is often element-wise. Here each operator that can is applied to what
a transpose reads, and the transpose follows it. Where that leaves as many movements as before, the
graph stays as it was.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from opkit.dtypes import find_dtype

from ..ir import (
    Graph,
    Node,
    Settings,
    Shape,
    Tensor,
    Value,
    fixed_shape,
    fixed_size,
    is_one,
    normal_axes,
    pieces_of,
)
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
    """Return the graph with slices that are put side by side cut by the kernel that does it, which
    also writes what lies around a padded tensor that they are of."""
    work = _Joiner(graph)
    return work.rebuilt(work.joined)


@dataclass(frozen=True)
class _Cut:
    """What one operand of a concatenation is of a tensor: elements along one axis, some of which
    may lie beside it."""

    source: Value
    along: int
    start: int
    step: int
    count: int
    value: Any = None
    """Value of the elements outside; None where there are none."""
    around: tuple[tuple[int, int], ...] = ()
    """Elements of that value along the other axes, before and behind; empty for none."""


class _Joiner(Rebuilder):
    """Knows slices, pads and added axes by what they are made of."""

    def __init__(self, graph: Graph) -> None:
        super().__init__(graph)
        self._made: dict[str, tuple[Node, Value]] = {}

    def joined(self, node: Node, inputs: Sequence[Value]) -> Value | None:
        if node.operator == "concat":
            return self._concat(node, inputs)
        if node.operator not in ("slice", "pad", "reshape"):
            return None
        result = self.same(node, inputs)
        self._made.setdefault(result.tensor.name, (node, inputs[0]))
        return result

    def _concat(self, node: Node, inputs: Sequence[Value]) -> Value | None:
        sizes = [extent for value in inputs for extent in value.shape]
        if len(inputs) > _MOST_JOINED or not all(isinstance(each, int) for each in sizes):
            return None
        axis = _axis(node.settings["axis"], len(node.output.shape))
        for through_pads in (True, False):
            parts = [self._cut(value, axis, through_pads=through_pads) for value in inputs]
            result = self._cut_and_joined(node, axis, parts)
            if result is not None:
                return result
        return None

    def _cut_and_joined(self, node: Node, axis: int, parts: Sequence[_Cut]) -> Value | None:
        """Return parts put side by side by one kernel, which cuts them, and what lies around all of
        them behind it; None where they are whole, or too much for a kernel."""
        arounds = {part.around for part in parts}
        values = {part.value for part in parts if part.value is not None}
        dtypes = {part.source.dtype for part in parts}
        if len(arounds) > 1 or len(values) > 1 or dtypes != {node.output.dtype}:
            return None
        sources = [part.source for part in parts]
        before = [self.values[name].tensor.name for name in node.inputs]
        if [source.tensor.name for source in sources] == before:
            return None
        settings = {
            "axis": axis,
            "cuts": tuple((part.along, part.start, part.step, part.count) for part in parts),
            "value": next(iter(values), 0.0),
        }
        (around,) = arounds
        inner = around or ((0, 0),) * len(node.output.shape)
        pairs = zip(fixed_shape(node.output.shape), inner, strict=True)
        target = tuple(extent - sum(width) for extent, width in pairs)
        shapes = [fixed_shape(each.shape) for each in sources]
        if len(pieces_of("concat_slices", settings, shapes, target)) > _MOST_JOINED:
            return None
        result = self.builder.apply("concat_slices", *sources, **settings)
        if any(map(any, around)):
            joined = result
            result = joined.apply("pad", widths=around, value=settings["value"])
            self._made[result.tensor.name] = (self.builder.nodes[-1], joined)
        return result

    def _cut(self, value: Value, axis: int, *, through_pads: bool) -> _Cut:
        """Return what an operand of a concatenation along an axis is a cut of."""
        whole = _Cut(value, axis, 0, 1, fixed_size(value.shape[axis]))
        made, source = self._made.get(value.tensor.name, (None, value))
        added = made is not None and made.operator == "reshape"
        if added and value.shape != (*source.shape[:axis], 1, *source.shape[axis:]):
            return whole
        if added:
            made, source = self._made.get(source.tensor.name, (None, source))
        found: _Cut | None = None
        if made is not None and made.operator == "slice":
            along = _axis(made.settings["axis"], source.ndim)
            start, step = made.settings["start"], made.settings["step"]
            count = value.shape[along + (added and along >= axis)]
            if not all(isinstance(each, int) for each in (start, step, count)):
                return whole
            found = _Cut(source, along, start, step, count)
            made, source = self._made.get(source.tensor.name, (None, source))
        if through_pads and made is not None and made.operator == "pad":
            found = _of_padded(source, made, found) or found
        if found is None:
            return whole
        if added:
            shape = found.source.shape
            wide = found.source.reshape(*shape[:axis], 1, *shape[axis:])
            around = found.around and (*found.around[:axis], (0, 0), *found.around[axis:])
            found = replace(
                found, source=wide, along=found.along + (found.along >= axis), around=around
            )
        return found if not found.around or not any(found.around[axis]) else whole


def _of_padded(source: Value, pad: Node, cut: _Cut | None) -> _Cut | None:
    """Return a cut of a padded tensor, or all of it, as one of what the padding lies around; None
    where there is no one axis that it is cut along."""
    widths = pad.settings["widths"]
    padded = [axis for axis, width in enumerate(widths) if any(width)]
    if cut is None:
        if len(padded) != 1:
            return None
        (along,) = padded
        cut = _Cut(source, along, 0, 1, fixed_size(pad.output.shape[along]))
    if not all(isinstance(each, int) for width in widths for each in width):
        return None
    around = tuple((0, 0) if axis == cut.along else width for axis, width in enumerate(widths))
    start = cut.start - widths[cut.along][0]
    return replace(cut, source=source, start=start, value=pad.settings["value"], around=around)
