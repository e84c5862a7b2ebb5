"""Graphs to graphs: composite operators taken apart, equal work done once, arithmetic that costs
less."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ..ir import (
    HALVES,
    Graph,
    Node,
    Tensor,
    Value,
    holds_all,
    is_floating,
    is_one,
    is_rounded,
    wrapped,
)
from ..ops import OPERATORS, reduce_whole
from ..tracing import GraphBuilder

__all__ = ["Rebuilder", "expand", "round_each", "runs_of", "simplify"]

# What one multiplication multiplies by without overflow or loss of digits.
_SMALLEST, _LARGEST = 2.0**-125, 2.0**127


class Rebuilder:
    """Applies the nodes of a graph again, one by one, to a new graph with the same inputs."""

    def __init__(
        self,
        graph: Graph,
        builder: GraphBuilder | None = None,
        known: Mapping[str, Value] | None = None,
    ) -> None:
        """Take a graph, and a builder that has the inputs already, or values in their place."""
        self.graph = graph
        nested = known is not None or (builder is not None and bool(builder.nodes))
        self.builder = builder or GraphBuilder(graph.name)
        self.values: dict[str, Value] = dict(known or {})
        if nested:
            return
        for tensor in graph.inputs:
            value = self.builder.input(tensor.name, tensor.shape, tensor.dtype)
            self.values[tensor.name] = value
        self.builder._attributes = list(graph.attributes)
        self.builder._names.update(a.name for a in graph.attributes)

    def rebuilt(self, rule: Callable[[Node, Sequence[Value]], Value | None]) -> Graph:
        """Return the graph with each node as a rule gives it from its inputs; where that is None,
        as it is."""
        self._apply(rule)
        return self.finish()

    def output(self) -> Value:
        """Apply all nodes as they are; return the first output."""
        self._apply(self.same)
        return self.values[self.graph.outputs[0][1]]

    def _apply(self, rule: Callable[[Node, Sequence[Value]], Value | None]) -> None:
        for node in self.graph.nodes:
            with self.builder.at(node.location):
                inputs = [self.values[name] for name in node.inputs]
                value = rule(node, inputs)
                self.values[node.output.name] = self.same(node, inputs) if value is None else value

    def finish(self) -> Graph:
        for name, tensor in self.graph.outputs:
            self.builder.output(name, self.values[tensor])
        return self.builder.graph()

    def same(self, node: Node, inputs: Sequence[Value]) -> Value:
        """Apply a node as it is."""
        if node.operator in ("constant", "attribute", "extent"):
            tensor = node.output
            return self.builder._node(
                node.operator, (), (), tensor.dtype, node.attributes, node.location
            )
        return self.builder.apply(node.operator, *inputs, **dict(node.attributes))


def expand(graph: Graph, *, fractions_only: bool = False, kept: Collection[str] = ()) -> Graph:
    """Return the graph in operators that kernels compute: composites expanded, reductions over
    neighbouring axes that keep their rank.

    Args:
        graph: the program.
        fractions_only: the target reduces fractions only: whole numbers are reduced by them.
        kept: composites that the target computes by itself.
    """
    work = Rebuilder(graph)
    for node in graph.nodes:
        with work.builder.at(node.location):
            inputs = [work.values[name] for name in node.inputs]
            is_kept = node.operator in kept
            value = (
                work.same(node, inputs)
                if is_kept
                else _expanded(work, node, inputs, fractions_only)
            )
            work.values[node.output.name] = _retyped(value, node.output)
    result = work.finish()
    composite = any(
        (OPERATORS[n.operator].expand is not None and n.operator not in kept)
        or (OPERATORS[n.operator].kind == "reduction" and not _is_plain(result, n, fractions_only))
        for n in result.nodes
    )
    return expand(result, fractions_only=fractions_only, kept=kept) if composite else result


def _is_plain(graph: Graph, node: Node, fractions_only: bool) -> bool:
    """Whether a reduction keeps the rank and runs along neighbouring axes, not all of extent 1, and
    names these in one way: equal reductions are then equal nodes."""
    (source,) = graph.inputs_of(node)
    if fractions_only and _reduces_whole(source.dtype):
        return False
    axes = node.settings.axes(len(source.shape))
    is_needed = not all(is_one(source.shape[at]) for at in axes)
    is_kept = node.settings.truth("keepdims") and node.settings["axis"] == axes
    return is_kept and len(runs_of(axes)) == 1 and is_needed


def _retyped(value: Value, tensor: Tensor) -> Value:
    return value if value.dtype == tensor.dtype else value.astype(tensor.dtype)


def _reduces_whole(dtype: str) -> bool:
    return dtype in ("bool", "int8", "uint8", "int16", "int32")


def _expanded(work: Rebuilder, node: Node, inputs: Sequence[Value], fractions_only: bool) -> Value:
    row = OPERATORS[node.operator]
    if row.expand is not None:
        return row.expand(*inputs, **dict(node.attributes))
    if row.kind == "reduction":
        return _keeping(node, inputs[0], fractions_only)
    if node.operator == "abs" and inputs[0].dtype in ("bool", "uint8"):
        # Never negative, and the instruction takes neither type.
        return inputs[0]
    return work.same(node, inputs)


def _keeping(node: Node, value: Value, fractions_only: bool) -> Value:
    """Return a reduction as one for each run of neighbouring axes, all keeping the rank."""
    shape = value.shape
    axes = node.settings.axes(value.ndim)
    is_whole = fractions_only and _reduces_whole(value.dtype)
    if node.operator == "sum" and value.dtype == "bool" and not is_whole:
        value = value.astype("int32")
    for run in reversed(runs_of(axes)):
        if all(is_one(shape[at]) for at in run):
            continue
        if is_whole:
            value = reduce_whole(node.operator, value, run)
        else:
            value = value.apply(node.operator, axis=run, keepdims=True)
    if node.settings["keepdims"]:
        return value
    kept = tuple(extent for at, extent in enumerate(shape) if at not in axes)
    return value.reshape(*kept)


def runs_of(axes: Sequence[int]) -> list[tuple[int, ...]]:
    """Return axes with those that follow one another together."""
    runs: list[list[int]] = []
    for axis in axes:
        if runs and runs[-1][-1] == axis - 1:
            runs[-1].append(axis)
        else:
            runs.append([axis])
    return [tuple(run) for run in runs]


def round_each(graph: Graph) -> Graph:
    """Return the graph in which every operator reads 16 bits as NumPy does: what was computed in
    such a type is rounded to it first."""
    work = Rebuilder(graph)

    def rule(node: Node, inputs: Sequence[Value]) -> Value | None:
        if OPERATORS[node.operator].kind not in ("elementwise", "reduction", "scan"):
            return None
        halves = [
            v.dtype in HALVES and not is_rounded(n, graph.producers)
            for n, v in zip(node.inputs, inputs, strict=True)
        ]
        if node.operator == "cast" or not any(halves):
            return None
        given = [v.astype(v.dtype) if half else v for v, half in zip(inputs, halves, strict=True)]
        return work.builder.apply(node.operator, *given, **dict(node.attributes))

    return work.rebuilt(rule)


def simplify(graph: Graph, *, fast_math: bool = False) -> Graph:
    """Return a graph of fewer and cheaper nodes with the same values, up to rounding in float32.

    Args:
        graph: the program.
        fast_math: casts to 16 bits and back need not round, nor do products of 16 bits that a cast
            widens.
    """
    for _ in range(8):
        work = _Simplifier(graph, fast_math)
        result = work.run()
        if result == graph:
            return result
        graph = result
    return graph


class _Simplifier(Rebuilder):
    def __init__(self, graph: Graph, fast_math: bool) -> None:
        super().__init__(graph)
        self.fast_math = fast_math

    def run(self) -> Graph:
        for node in self.graph.nodes:
            with self.builder.at(node.location):
                inputs = [self.values[name] for name in node.inputs]
                value = self.rewritten(node, inputs)
                self.values[node.output.name] = value
        return self.finish()

    def rewritten(self, node: Node, inputs: Sequence[Value]) -> Value:
        folded = self.folded(node, inputs)
        if folded is not None:
            return folded
        rule = _RULES.get(node.operator)
        value = rule(self, node, inputs) if rule is not None else None
        if value is None:
            value = _before_reshape(self, node, inputs)
        if value is None:
            return self.same(node, inputs)
        if value.dtype != node.output.dtype:
            value = value.astype(node.output.dtype)
        if value.shape != node.output.shape:
            value = value.apply("broadcast_to", shape=node.output.shape)
        return value

    def node_of(self, value: Value) -> Node | None:
        """Return the node of the new graph that computes a value."""
        return self.builder_nodes.get(value.tensor.name)

    @property
    def builder_nodes(self) -> Mapping[str, Node]:
        nodes = self.builder._nodes
        known: dict[str, Node] = self.__dict__.setdefault("_nodes_by_name", {})
        for node in nodes[len(known) :]:
            known[node.output.name] = node
        return known

    def number(self, value: Value) -> float | None:
        """Return a constant's value."""
        node = self.node_of(value)
        if node is None or node.operator != "constant":
            return None
        return node.settings["value"]  # type: ignore[no-any-return]

    def is_once(self, node: Node, index: int) -> bool:
        """Whether only this node reads its operand."""
        name = node.inputs[index]
        return len(self.graph.users[name]) == 1 and all(t != name for _, t in self.graph.outputs)

    def folded(self, node: Node, inputs: Sequence[Value]) -> Value | None:
        row = OPERATORS[node.operator]
        if row.kind != "elementwise" or not inputs or node.output.shape:
            return None
        numbers = [self.number(value) for value in inputs]
        if any(number is None for number in numbers):
            return None
        import numpy as np

        arrays = [np.asarray(number) for number in numbers]
        with np.errstate(all="ignore"):
            value: Any = row.reference(*arrays, **dict(node.attributes)).item()
        if is_floating(node.output.dtype):
            value = float(value)
        elif node.output.dtype != "bool":
            value = int(value)
        return self.builder.constant(value, node.output.dtype)


def _fraction(node: Node) -> bool:
    return is_floating(node.output.dtype)


def _add(work: _Simplifier, node: Node, inputs: Sequence[Value]) -> Value | None:
    a, b = inputs
    if work.number(a) is not None:
        a, b = b, a
    number = work.number(b)
    if number is not None:
        if number == 0 and (not _fraction(node) or math.copysign(1.0, number) < 0):
            # -0 + 0 is 0: what has fractions stays an addition.
            return a
        # (x + c) + d stays two additions: programs round on purpose by such sums.
        return a + number if inputs[0] is not a else None
    return None


def work_value(work: _Simplifier, name: str) -> Value:
    """Return the value of a tensor of the graph under construction."""
    node = work.builder_nodes.get(name)
    if node is not None:
        return Value(work.builder, node.output)
    return work.values[name]


def _sub(work: _Simplifier, node: Node, inputs: Sequence[Value]) -> Value | None:
    a, b = inputs
    number = work.number(b)
    if number is not None and node.output.dtype != "bool":
        return a + wrapped(node.output.dtype, -number)
    if work.number(a) is not None:
        return _neg(work, node, [b]) + work.number(a)  # type: ignore[operator]
    return None


def _mul(work: _Simplifier, node: Node, inputs: Sequence[Value]) -> Value | None:
    a, b = inputs
    if work.number(a) is not None:
        a, b = b, a
    number = work.number(b)
    if number is not None:
        if number == 1:
            return a
        inner = work.node_of(a)
        if inner is not None and inner.operator == "mul" and _fraction(node):
            other = work.number(work_value(work, inner.inputs[1]))
            if other is not None and _SMALLEST < abs(other * number) < _LARGEST:
                return work_value(work, inner.inputs[0]) * (other * number)
            is_square = inner.inputs[0] == inner.inputs[1]
            if is_square and work.is_once(node, 0 if inputs[0] is a else 1):
                # (x * x) * c is (x * c) * x: one place read twice takes the vector unit two cycles.
                x = work_value(work, inner.inputs[0])
                return (x * number) * x
        if inner is not None and inner.operator == "div" and _fraction(node):
            # (c / b) * d is one division where nothing else reads the quotient.
            constant = work.number(work_value(work, inner.inputs[0]))
            product = 0.0 if constant is None else constant * number
            is_once = work.is_once(node, 0 if inputs[0] is a else 1)
            if is_once and _SMALLEST < abs(product) < _LARGEST:
                return product / work_value(work, inner.inputs[1])
        return a * number if inputs[0] is not a else None
    if not _fraction(node):
        return None
    # a * (1 / b) is one division where the quotient has as many elements as the product.
    for left, right, index in ((a, b, 1), (b, a, 0)):
        inner = work.node_of(right)
        if inner is None or inner.operator != "div" or inner.output.shape != node.output.shape:
            continue
        at = index if inputs[index] is right else 1 - index
        if not node.output.shape or not work.is_once(node, at):
            continue
        top, bottom = (work_value(work, name) for name in inner.inputs)
        if work.number(top) is not None:
            return left * work.number(top) / bottom  # type: ignore[operator]
    # (x * c) * y is (x * y) * c: numbers gather outside, where they meet.
    return None


def _div(work: _Simplifier, node: Node, inputs: Sequence[Value]) -> Value | None:
    a, b = inputs
    number = work.number(b)
    if number is not None and number != 0 and math.isfinite(number):
        return a * (1.0 / number)
    if b.shape != node.output.shape and work.number(a) != 1:
        # One division for each divisor, and a multiplication for each quotient.
        return a * (1.0 / b)
    return None


def _neg(work: _Simplifier, node: Node, inputs: Sequence[Value]) -> Value:
    minus = -1.0 if _fraction(node) else wrapped(node.output.dtype, -1)
    return inputs[0] * minus


def _cast(work: _Simplifier, node: Node, inputs: Sequence[Value]) -> Value | None:
    (x,) = inputs
    wanted = node.output.dtype
    known = work.builder_nodes
    if x.dtype in HALVES and not work.fast_math and not is_rounded(x.tensor.name, known):
        # Kernels compute with 16 bits as float32: a cast reads what the type holds.
        return None if x.dtype == wanted else x.astype(x.dtype).astype(wanted)
    if x.dtype == wanted:
        return x
    if not is_floating(wanted) or not is_floating(x.dtype):
        return None
    inner = work.node_of(x)
    if inner is not None and inner.operator == "cast":
        source = work_value(work, inner.inputs[0])
        is_exact = source.dtype not in HALVES or is_rounded(source.tensor.name, known)
        if work.fast_math or (is_exact and holds_all(x.dtype, source.dtype)):
            return source.astype(wanted)
    if work.fast_math and (sums := _sums(work, x)) is not None:
        return sums.astype(wanted)
    return _rounded_product(work, node, x) if wanted in HALVES else None


_MOVING = ("reshape", "transpose", "slice", "broadcast_to")
"""Operators of one tensor whose results are elements of it."""


def _rounded_product(work: _Simplifier, node: Node, x: Value) -> Value | None:
    """Return the rounded sums of a product of 16 bits, or a part of them, as the cube rounds them
    where nothing else reads them."""
    inner = work.node_of(x)
    if inner is None or not work.is_once(node, 0):
        return None
    if inner.operator in _MOVING:
        source = work_value(work, inner.inputs[0])
        known = work.graph.producers.get(node.inputs[0])
        if known is None or known.operator != inner.operator:
            return None
        product = _rounded_product(work, replace(node, inputs=known.inputs), source)
        return None if product is None else product.apply(inner.operator, **dict(inner.attributes))
    operands = [work_value(work, name) for name in inner.inputs]
    if inner.operator != "matmul" or any(each.dtype != node.output.dtype for each in operands):
        return None
    settings = {**inner.settings, "dtype": node.output.dtype}
    return operands[0].apply("matmul", operands[1], **settings)


def _sums(work: _Simplifier, x: Value) -> Value | None:
    """Return a product, or a part of it, in the data type that it was added up in, where a cast
    rounds it."""
    inner = work.node_of(x)
    if inner is None or inner.operator not in ("cast", *_MOVING):
        return None
    source = work_value(work, inner.inputs[0])
    if inner.operator == "cast":
        product = work.node_of(source)
        is_product = product is not None and product.operator == "matmul"
        return source if is_product and source.dtype == "float32" else None
    found = _sums(work, source)
    return None if found is None else found.apply(inner.operator, **dict(inner.attributes))


def _reshape(work: _Simplifier, node: Node, inputs: Sequence[Value]) -> Value | None:
    (x,) = inputs
    if x.shape == node.output.shape:
        return x
    inner = work.node_of(x)
    if inner is not None and inner.operator == "reshape":
        return work_value(work, inner.inputs[0]).reshape(*node.output.shape)
    if inner is not None and inner.operator == "cast" and work.is_once(node, 0):
        # What is given is seen in any shape for nothing: the cast then joins what reads it.
        source = work_value(work, inner.inputs[0])
        before = work.node_of(source)
        if (before is None or before.operator == "reshape") and is_floating(x.dtype):
            return source.reshape(*node.output.shape).astype(x.dtype)
    if work.number(x) is not None:
        # A number lies in no memory that could be seen in another shape.
        return x.apply("broadcast_to", shape=node.output.shape)
    return None


def _before_reshape(work: _Simplifier, node: Node, inputs: Sequence[Value]) -> Value | None:
    """Return work on each element of a computed tensor in another shape as done before that: behind
    it, it would be another kernel."""
    if OPERATORS[node.operator].kind != "elementwise":
        return None
    varying = [at for at, value in enumerate(inputs) if work.number(value) is None]
    if len(varying) != 1:
        return None
    (at,) = varying
    inner = work.node_of(inputs[at])
    if inner is None or inner.operator != "reshape" or not work.is_once(node, at):
        return None
    source = work_value(work, inner.inputs[0])
    before = work.node_of(source)
    is_joined = before is not None and OPERATORS[before.operator].kind in _IN_LOOPS
    if not is_joined or "int64" in (node.output.dtype, source.dtype):
        return None
    given = [source if i == at else value for i, value in enumerate(inputs)]
    value = work.builder.apply(node.operator, *given, **dict(node.attributes))
    return value.reshape(*node.output.shape)


_IN_LOOPS = ("elementwise", "reduction")
"""What one kernel's loops compute together."""


def _transpose(work: _Simplifier, node: Node, inputs: Sequence[Value]) -> Value | None:
    (x,) = inputs
    axes = node.settings["axes"]
    if tuple(axes) == tuple(range(x.ndim)):
        return x
    inner = work.node_of(x)
    if inner is not None and inner.operator == "transpose":
        before = inner.settings["axes"]
        return work_value(work, inner.inputs[0]).transpose(*(before[at] for at in axes))
    return None


def _sorted(work: _Simplifier, node: Node, inputs: Sequence[Value]) -> Value | None:
    """Return lines across rows sorted as rows: those are the vector unit's."""
    (x,) = inputs
    axis = node.settings.axis(x.ndim)
    if axis == x.ndim - 1 or x.dtype == "int32":
        return None
    order = [at for at in range(x.ndim) if at != axis] + [axis]
    turned = x.transpose(*order).apply(node.operator, **{**node.settings, "axis": x.ndim - 1})
    return turned.transpose(*sorted(range(x.ndim), key=order.__getitem__))


def _slice(work: _Simplifier, node: Node, inputs: Sequence[Value]) -> Value | None:
    """Return a slice of what was put side by side as the parts that it is made of."""
    (x,) = inputs
    inner = work.node_of(x)
    start, stop = node.settings["start"], node.settings["stop"]
    if inner is None or inner.operator != "concat" or node.settings["step"] != 1:
        return None
    axis = node.settings.axis(x.ndim)
    if inner.settings.axis(x.ndim) != axis:
        return None
    parts = [work_value(work, name) for name in inner.inputs]
    extents = [each.shape[axis] for each in parts]
    if not all(isinstance(each, int) for each in (start, stop, *extents)):
        return None
    found, begin = [], 0
    for part, extent in zip(parts, map(int, map(str, extents)), strict=True):
        first, last = max(0, int(str(start)) - begin), min(extent, int(str(stop)) - begin)
        begin += extent
        if first == 0 and last == extent:
            found.append(part)
        elif first < last:
            found.append(part.apply("slice", axis=axis, start=first, stop=last, step=1))
    if len(found) == 1:
        return found[0]
    return work.builder.apply("concat", *found, axis=axis) if found else None


def _concat(work: _Simplifier, node: Node, inputs: Sequence[Value]) -> Value | None:
    """Return what is put side by side in one step, where some of it was put so before."""
    rank = len(node.output.shape)
    axis = node.settings.axis(rank)
    parts: list[Value] = []
    for value in inputs:
        inner = work.node_of(value)
        is_joined = inner is not None and inner.operator == "concat"
        if inner is not None and is_joined and inner.settings.axis(rank) == axis:
            parts += [work_value(work, name) for name in inner.inputs]
        else:
            parts.append(value)
    if len(parts) == len(inputs) or len(parts) > _MOST_PARTS:
        return None
    return work.builder.apply("concat", *parts, axis=axis)


_MOST_PARTS = 32
"""Tensors that are put side by side in one step, at most."""


def _matmul(work: _Simplifier, node: Node, inputs: Sequence[Value]) -> Value | None:
    # A product reads a transposed matrix where it lies.
    operands = list(inputs)
    flags = {
        "transpose_a": node.settings["transpose_a"],
        "transpose_b": node.settings["transpose_b"],
    }
    changed = False
    for index, flag in enumerate(flags):
        inner = work.node_of(operands[index])
        if inner is None or inner.operator != "transpose":
            continue
        axes = inner.settings["axes"]
        rank = len(axes)
        source = work_value(work, inner.inputs[0])
        if tuple(axes) == (*range(rank - 2), rank - 1, rank - 2):
            operands[index] = source
        elif axes[-2] == rank - 1:
            # What is left to move are whole rows, not elements.
            operands[index] = source.transpose(*axes[:-2], axes[-1], axes[-2])
        else:
            continue
        flags[flag] = not flags[flag]
        changed = True
    dtype = node.settings["dtype"]
    halves = [half for each in operands if (half := _of_halves(work, each)) is not None]
    is_exact = len(halves) == 2 and halves[0].dtype == halves[1].dtype
    if is_exact and node.output.dtype == "float32":
        # The cube multiplies 16 bits without rounding, and adds up in float32.
        operands, dtype, changed = halves, "float32", True
    if work.fast_math and _is_cast_behind(work.graph, node.output):
        # The cube adds up in float32: a cast of the result takes the sums, not what rounds them.
        dtype, changed = "float32", True
    return work.builder.apply("matmul", *operands, **flags, dtype=dtype) if changed else None


def _of_halves(work: _Simplifier, value: Value) -> Value | None:
    """Return the tensor of 16 bits that one of float32 was made of."""
    inner = work.node_of(value)
    if inner is None or inner.operator != "cast" or value.dtype != "float32":
        return None
    source = work_value(work, inner.inputs[0])
    return source if source.dtype in HALVES else None


def _is_cast_behind(graph: Graph, half: Tensor) -> bool:
    """Whether a tensor of 16 bits, or a part of it, is read as another type with fractions."""
    if half.dtype not in ("float16", "bfloat16"):
        return False
    for user in graph.users[half.name]:
        if user.operator == "cast" and is_floating(user.output.dtype):
            return True
        if user.operator in _MOVING and _is_cast_behind(graph, user.output):
            return True
    return False


def _expand_to(work: _Simplifier, node: Node, inputs: Sequence[Value]) -> Value | None:
    return inputs[0] if inputs[0].shape == node.output.shape else None


def _everywhere(work: _Simplifier, value: Value) -> float | None:
    """Return the number that a tensor holds everywhere."""
    node = work.node_of(value)
    while node is not None and node.operator in ("broadcast_to", "reshape"):
        value = work_value(work, node.inputs[0])
        node = work.node_of(value)
    return work.number(value)


def _joined_truths(neutral: bool) -> Callable[[_Simplifier, Node, Sequence[Value]], Value | None]:
    def rule(work: _Simplifier, node: Node, inputs: Sequence[Value]) -> Value | None:
        if any(value.dtype != "bool" for value in inputs):
            return None
        for value, other in (inputs, reversed(inputs)):
            number = _everywhere(work, value)
            if number is not None:
                same = bool(number) == neutral
                return other if same else work.builder.constant(not neutral, "bool")
        return None

    return rule


def _where(work: _Simplifier, node: Node, inputs: Sequence[Value]) -> Value | None:
    condition, a, b = inputs
    truth = _everywhere(work, condition)
    if truth is not None:
        return a if truth else b
    return a if a.tensor.name == b.tensor.name else None


_RULES: Mapping[str, Callable[[_Simplifier, Node, Sequence[Value]], Value | None]] = {
    "add": _add,
    "sub": _sub,
    "mul": _mul,
    "div": _div,
    "neg": _neg,
    "cast": _cast,
    "reshape": _reshape,
    "transpose": _transpose,
    "matmul": _matmul,
    "sort": _sorted,
    "argsort": _sorted,
    "broadcast_to": _expand_to,
    "slice": _slice,
    "concat": _concat,
    "where": _where,
    "logical_and": _joined_truths(True),
    "bitwise_and": _joined_truths(True),
    "logical_or": _joined_truths(False),
    "bitwise_or": _joined_truths(False),
}
