"""The gradient of a graph, by reverse accumulation over its simpler operators."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from ..ir import (
    HALVES,
    Graph,
    GraphError,
    Node,
    Shape,
    Value,
    is_floating,
    is_one,
    same,
)
from ..ops import OPERATORS, count_up
from ..tracing import GraphBuilder
from .rewrite import Rebuilder

__all__ = ["gradient"]

_OPPOSITE = {"maximum": "minimum", "minimum": "maximum"}


def gradient(
    graph: Graph,
    wanted: Sequence[str] | None = None,
    *,
    constants: Collection[str] = (),
    is_rounded: bool = True,
) -> Graph:
    """Return the program of the gradients: `grad_<output>` for each output, then the inputs, to
    `grad_<input>`.

    A gradient has its input's own shape: what was broadcast is summed. Inputs that are no
    fractions have none; one
    that no output depends on gets zeros.

    Args:
        graph: the program.
        wanted: inputs; all of fractions without it.
        constants: tensors by way of which nothing changes.
        is_rounded: gradients have their inputs' data types; else those of 16 bits stay float32, as
            parts of sums do.

    Raises:
        GraphError: an operator has no gradient; at the user's line.
    """
    differentiable = [t.name for t in graph.inputs if is_floating(t.dtype)]
    names = list(wanted) if wanted is not None else differentiable
    unknown = [name for name in names if name not in differentiable]
    if unknown:
        raise GraphError(f'"{unknown[0]}" is no input of fractions', location=None)
    outputs = [(name, t) for name, t in graph.output_tensors if is_floating(t.dtype)]
    builder = GraphBuilder(f"{graph.name}_grad")
    # Two outputs may be one tensor: each has its gradient.
    seeds = [
        (tensor.name, builder.input(f"grad_{name}", tensor.shape, tensor.dtype))
        for name, tensor in outputs
    ]
    work = _Reverse(graph, builder)
    work.forward()
    for name, seed in seeds:
        # Gradients are added up in float32, and rounded once, at the end.
        work.add(name, _single(seed))
    work.constants = {work.values[name].tensor.name for name in constants}
    work.backward()
    for name in names:
        found = work.adjoints.get(name)
        tensor = graph.tensors[name]
        value = found if found is not None else work.values[name] * 0.0
        dtype = "float32" if tensor.dtype in HALVES and not is_rounded else tensor.dtype
        builder.output(f"grad_{name}", _shaped(value, tensor.shape).astype(dtype))
    return builder.graph()


class _Reverse(Rebuilder):
    def __init__(self, graph: Graph, builder: GraphBuilder) -> None:
        super().__init__(graph, builder)
        self.adjoints: dict[str, Value] = {}
        self.constants: set[str] = set()
        self.producers: dict[str, Node] = {}
        """Producers of those of the builder's nodes that were asked for."""

    def forward(self) -> None:
        """Apply every node again; composites without a gradient of their own are taken apart."""
        for node in self.graph.nodes:
            with self.builder.at(node.location):
                inputs = [self.values[name] for name in node.inputs]
                row = OPERATORS[node.operator]
                if row.gradient is None and row.expand is not None:
                    value = row.expand(*inputs, **dict(node.attributes))
                else:
                    value = self.same(node, inputs)
                self.values[node.output.name] = value

    def add(self, name: str, value: Value) -> None:
        """Add to the adjoint of a tensor of the given graph."""
        self.accumulate(self.values[name].tensor.name, value)

    def accumulate(self, name: str, value: Value) -> None:
        value = _single(value)
        known = self.adjoints.get(name)
        self.adjoints[name] = value if known is None else known + value

    def backward(self) -> None:
        """Go back over the nodes, the last first; composites met on the way are taken apart."""
        nodes = list(self.builder.nodes)
        for node in reversed(nodes):
            adjoint = self.adjoints.get(node.output.name)
            if adjoint is None or not node.inputs or node.output.name in self.constants:
                continue
            with self.builder.at(node.location):
                self.pull(node, adjoint)

    def pull(self, node: Node, adjoint: Value) -> None:
        row = OPERATORS[node.operator]
        inputs = [self.builder.value(name) for name in node.inputs]
        output = self.builder.value(node.output.name)
        adjoint = _shaped(adjoint, output.shape)
        if node.operator in _OPPOSITE:
            inner = self.between_bounds(node, adjoint)
            if inner is not None:
                self.accumulate(*inner)
                return
        if row.gradient is None:
            parts: Sequence[Value | None] = self.apart(node, inputs, adjoint)
        else:
            if row.kind == "reduction":
                adjoint, output = _kept(node, inputs[0], adjoint), _kept(node, inputs[0], output)
            parts = row.gradient(adjoint, *inputs, output, **dict(node.attributes))
        for name, value, part in zip(node.inputs, inputs, parts, strict=True):
            if part is not None and is_floating(value.dtype):
                self.accumulate(name, _shaped(part, value.shape))

    def between_bounds(self, node: Node, adjoint: Value) -> tuple[str, Value] | None:
        """Return what is between two bounds, as minimum(maximum(x, low), high), with its gradient:
        that is 0 at either of them, as torch's of hardtanh; None for other extremes."""
        for first, bound in (node.inputs, reversed(node.inputs)):
            inside = self.producer(first)
            if inside is None or not self.is_bound(bound):
                continue
            if inside.operator == "relu" and node.operator == "minimum":
                (inner,), low = inside.inputs, self.builder.constant(0.0)
            elif inside.operator == _OPPOSITE[node.operator]:
                inner, other = inside.inputs
                if self.is_bound(inner):
                    inner, other = other, inner
                if not self.is_bound(other):
                    continue
                low = self.builder.value(other)
            else:
                continue
            x = self.builder.value(inner)
            less, greater = ("less", "greater")[:: 1 if node.operator == "minimum" else -1]
            kept = x.apply(less, self.builder.value(bound)).apply("where", adjoint, 0.0)
            kept = x.apply(greater, low).apply("where", kept, 0.0)
            return inner, _shaped(kept, x.shape)
        return None

    def producer(self, name: str) -> Node | None:
        nodes = self.builder.nodes
        self.producers |= {node.output.name: node for node in nodes[len(self.producers) :]}
        return self.producers.get(name)

    def is_bound(self, name: str) -> bool:
        """Whether a tensor is one number for all elements, which has no gradient."""
        node = self.producer(name)
        return node is not None and node.operator in ("constant", "attribute", "extent")

    def apart(self, node: Node, inputs: Sequence[Value], adjoint: Value) -> Sequence[Value | None]:
        """Return the gradients of an operator by those of what it is made of."""
        row = OPERATORS[node.operator]
        if row.expand is None:
            return self.moved(node, inputs, adjoint)
        inner = GraphBuilder("inner")
        stand_ins = [
            inner.input(f"i{at}", value.shape, value.dtype) for at, value in enumerate(inputs)
        ]
        inner.output("y", row.expand(*stand_ins, **dict(node.attributes)))
        graph = inner.graph()
        nested = _Reverse(graph, self.builder)
        nested.values = {f"i{at}": value for at, value in enumerate(inputs)}
        nested.forward()
        first = {value.tensor.name for value in nested.values.values()}
        inputs_of_inner = {value.tensor.name for value in inputs}
        nested.add(graph.outputs[0][1], adjoint)
        for each in reversed(list(self.builder.nodes)):
            found = nested.adjoints.get(each.output.name)
            if found is None or each.output.name not in first - inputs_of_inner or not each.inputs:
                continue
            nested.pull(each, found)
        return [nested.adjoints.get(value.tensor.name) for value in inputs]

    def moved(self, node: Node, inputs: Sequence[Value], adjoint: Value) -> Sequence[Value | None]:
        """Return the gradients of slices, joins and pads: the parts that went to each place."""
        settings: Mapping[str, Any] = node.settings
        if node.operator == "slice":
            (x,) = inputs
            axis, start, stop, step = (settings[key] for key in ("axis", "start", "stop", "step"))
            if step != 1:
                adjoint = _apart(adjoint, axis, step)
                stop = start + adjoint.shape[axis]
            extent = x.shape[axis]
            widths: list[tuple[Any, Any]] = [(0, 0)] * x.ndim
            widths[axis] = (start, extent - stop)
            return [adjoint.apply("pad", widths=tuple(widths), value=0.0)]
        if node.operator == "take":
            table, indices = inputs
            return [_gathered(adjoint, table, indices, settings["axis"]), None]
        if node.operator == "concat":
            axis, begin = settings["axis"], 0
            found: list[Value | None] = []
            for x in inputs:
                if x.shape[axis] == 0:
                    # No slice takes no elements.
                    found.append(None)
                    continue
                stop = begin + x.shape[axis]
                part = adjoint.apply("slice", axis=axis, start=begin, stop=stop, step=1)
                found.append(part)
                begin = stop
            return found
        if node.operator == "pad":
            (x,) = inputs
            if 0 in x.shape:
                return [None]
            part = adjoint
            widths_of = settings["widths"]
            for axis, (before, _) in enumerate(widths_of):
                part = part.apply(
                    "slice", axis=axis, start=before, stop=before + x.shape[axis], step=1
                )
            return [part]
        raise GraphError(f'"{node.operator}" has no gradient yet', location=node.location)


def _apart(value: Value, axis: int, step: int) -> Value:
    """Return a tensor with zeros between its elements along an axis: one at every `step`."""
    shape = value.shape
    split = value.reshape(*shape[: axis + 1], 1, *shape[axis + 1 :])
    widths = tuple((0, step - 1) if at == axis + 1 else (0, 0) for at in range(split.ndim))
    wide = split.apply("pad", widths=widths, value=0.0)
    wide = wide.reshape(*shape[:axis], shape[axis] * step, *shape[axis + 1 :])
    stop = (shape[axis] - 1) * step + 1
    return wide.apply("slice", axis=axis, start=0, stop=stop, step=1)


def _gathered(adjoint: Value, table: Value, indices: Value, axis: int) -> Value:
    """Return what each row of a table gets from all that took it: a product with a matrix that
    has a 1 where an index names a row."""
    rows = table.shape[axis]
    after = table.ndim - axis - 1
    lead = list(range(axis, axis + indices.ndim))
    order = [*lead, *range(axis), *range(adjoint.ndim - after, adjoint.ndim)]
    flat = indices.reshape(-1)
    # Indices count from the end where they are negative.
    if _signed(indices):
        whole = rows if isinstance(rows, int) else table.builder.extent(rows).astype(flat.dtype)
        flat = flat.apply("less", 0).apply("where", flat + whole, flat)
    parts = adjoint.transpose(*order).reshape(flat.shape[0], -1)
    places = count_up(adjoint, rows).reshape(rows, 1)
    hits = places.apply("equal", flat.astype("int32").reshape(1, -1)).astype(parts.dtype)
    others = [e for at, e in enumerate(table.shape) if at != axis]
    gathered = (hits @ parts).reshape(rows, *others)
    back = [*range(1, axis + 1), 0, *range(axis + 1, table.ndim)]
    return gathered.transpose(*back)


def _signed(indices: Value) -> bool:
    return indices.dtype.startswith("int")


def _kept(node: Node, source: Value, value: Value) -> Value:
    """Return a reduction's value with the axes that it lost, of extent 1."""
    if node.settings["keepdims"]:
        return value
    axes = node.settings.axes(source.ndim)
    shape = tuple(1 if at in axes else e for at, e in enumerate(source.shape))
    return value.reshape(*shape)


def _single(value: Value) -> Value:
    return value.astype("float32") if value.dtype in HALVES else value


def _shaped(value: Value, shape: Shape) -> Value:
    """Return a gradient in the shape of what was broadcast, summed over where it was."""
    if value.ndim == len(shape) and all(
        same(a, b) for a, b in zip(value.shape, shape, strict=True)
    ):
        return value
    lead = value.ndim - len(shape)
    if lead > 0:
        value = value.sum(axis=tuple(range(lead)))
    axes = tuple(
        at
        for at, (own, goal) in enumerate(zip(value.shape, shape[-value.ndim :], strict=False))
        if is_one(goal) and not is_one(own)
    )
    if axes:
        value = value.sum(axis=axes, keepdims=True)
    if value.shape != shape:
        value = value.apply("broadcast_to", shape=shape)
    return value
