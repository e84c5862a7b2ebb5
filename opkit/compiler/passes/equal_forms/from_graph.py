"""A graph as trees: arithmetic of fractions in algebra's own kinds, all else as calls by name."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from opkit import algebra
from opkit.algebra import Node as Tree

from ...ir import Graph, Node, Shape
from ...ops import OPERATORS

__all__ = ["COMPARISONS", "Call", "Trees", "trees_of"]

_SOURCES = ("constant", "attribute", "extent")
_REDUCTIONS = {"sum": "row_sum", "mean": "row_mean", "max": "row_max", "min": "row_min"}
"""Algebra's reductions by the compiler's names; their setting is the axes."""
COMPARISONS = {
    **{"<": "less", "<=": "less_equal", ">": "greater", ">=": "greater_equal"},
    **{"==": "equal", "!=": "not_equal"},
}
"""The compiler's comparisons by algebra's names."""


@dataclass(frozen=True)
class Call:
    """An operator that stands in a tree by its name."""

    operator: str
    attributes: Mapping[str, object]
    shapes: tuple[Shape, ...] | None
    """Shapes of its operands, where its result depends on them; None for one that broadcasts."""


@dataclass(frozen=True)
class Trees:
    """A graph's outputs as trees."""

    outputs: Mapping[str, Tree]
    calls: Mapping[tuple[str, str], Call]
    """Calls by a node's kind and value."""
    leaves: Mapping[str, Node]
    """Nodes by a leaf's name: numbers of other types, attributes and sizes."""


def trees_of(graph: Graph, written: Mapping[str, Tree] | None = None) -> Trees:
    """Return a graph's outputs as trees.

    Args:
        graph: some formulas, of fractions.
        written: outputs as they were written, over its inputs and attributes: their constants have
            names and are exact.
    """
    work = _Work(graph)
    for node in graph.nodes:
        work.trees[node.output.name] = work.tree(node)
    outputs = {name: work.trees[tensor] for name, tensor in graph.outputs}
    if written is not None:
        read = work.reader()
        for name, tensor in graph.output_tensors:
            if name not in written:
                continue
            if tensor.dtype not in _HALVES:
                outputs[name] = read(written[name])
            elif outputs[name].kind == "cast":
                outputs[name] = Tree("cast", (read(written[name]),), outputs[name].value)
    return Trees(outputs, work.calls, work.leaves)


class _Work:
    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.trees = {tensor.name: algebra.tensor(tensor.name) for tensor in graph.inputs}
        self.calls: dict[tuple[str, str], Call] = {}
        self.leaves: dict[str, Node] = {}
        # What is added to a product's rows joins its kernel as the half that it is.
        self.widens = all(OPERATORS[node.operator].kind != "product" for node in graph.nodes)

    def wide(self, name: str) -> Tree:
        """Return an operand as a computation of float32 takes it."""
        tensor = self.graph.tensors[name]
        if tensor.dtype not in _HALVES:
            return self.trees[name]
        attributes = (("dtype", "float32"),)
        value = f"{attributes}{None}{[tensor.dtype]}"
        self.calls[("cast", value)] = Call("cast", dict(attributes), None)
        return Tree("cast", (self.trees[name],), value)

    def reader(self) -> Callable[[Tree], Tree]:
        """Return what gives a formula, as it was written, the leaves that the graph computes
        with."""
        wide: dict[Tree, Tree] = {}
        for node in self.graph.nodes:
            tree = self.trees[node.output.name]
            if node.operator == "attribute":
                wide.setdefault(algebra.attribute(node.settings.text("name")), tree)
            elif node.operator == "cast" and node.output.dtype == "float32":
                wide |= {leaf: tree for leaf, known in wide.items() if known == tree.args[0]}
                if tree.args[0].kind == "input":
                    wide[tree.args[0]] = tree

        def read(tree: Tree) -> Tree:
            if tree not in wide:
                wide[tree] = algebra.rebuild(tree, tuple(map(read, tree.args)))
            return wide[tree]

        return read

    def tree(self, node: Node) -> Tree:
        if node.operator in _SOURCES:
            return self.source(node)
        if not node.inputs:
            return algebra.tensor(node.output.name)
        arguments = [self.trees[name] for name in node.inputs]
        tensors = [self.graph.tensors[name] for name in node.inputs]
        is_float = all(tensor.dtype in _FRACTIONS for tensor in tensors)
        is_known = node.operator in ("gelu", "pow", *_ARITHMETIC, *_REDUCTIONS)
        if self.widens and is_known and not is_float and node.output.dtype == "float32":
            is_float = all(tensor.dtype in (*_FRACTIONS, *_HALVES) for tensor in tensors)
            arguments = [self.wide(name) for name in node.inputs] if is_float else arguments
        if is_float and node.output.dtype in _FRACTIONS:
            if node.operator in _REDUCTIONS:
                kind = _REDUCTIONS[node.operator]
                return self.called(kind, node, arguments)
            if node.operator == "gelu" and node.settings["approximate"] == "none":
                return _gelu(*arguments)
            if node.operator in _ARITHMETIC:
                return _ARITHMETIC[node.operator](*arguments)
            power = _power(*arguments) if node.operator == "pow" else None
            if power is not None:
                return power
        if is_float and node.operator in _COMPARISON_SIGNS:
            return algebra.call(_COMPARISON_SIGNS[node.operator], *arguments)
        if node.operator == "where" and all(t.dtype in _FRACTIONS for t in tensors[1:]):
            return algebra.call("where", *arguments)
        return self.called(node.operator, node, arguments)

    def source(self, node: Node) -> Tree:
        value: Any = node.attributes[0][1]
        is_number = node.operator == "constant" and node.output.dtype in _FRACTIONS
        # A fraction is finite, and its zero has no sign.
        if is_number and math.isfinite(value) and (value or math.copysign(1.0, value) > 0):
            return algebra.number(Fraction(repr(float(value))))
        name = str(value) if node.output.dtype in _FRACTIONS else f"{value}:{node.output.dtype}"
        name = name if self.leaves.get(name, node) == node else node.output.name
        self.leaves[name] = node
        return algebra.attribute(name)

    def called(self, kind: str, node: Node, arguments: list[Tree]) -> Tree:
        row = OPERATORS[node.operator]
        own = node.output.name if row.kind == "random" else kind
        shapes: tuple[Shape, ...] | None = None
        if row.kind != "elementwise":
            shapes = tuple(self.graph.tensors[name].shape for name in node.inputs)
        dtypes = [self.graph.tensors[name].dtype for name in node.inputs]
        if own in _OWN_KINDS:
            # Algebra's function of that name is of float32.
            own = f"{own}_{node.output.dtype}"
        value = f"{node.attributes}{shapes}{dtypes}"
        self.calls[(own, value)] = Call(node.operator, dict(node.attributes), shapes)
        return Tree(own, tuple(arguments), value)


_FRACTIONS = ("float32", "float64")
"""That the arithmetic is of: float64 in references."""
_HALVES = ("float16", "bfloat16")
_LARGEST_EXPONENT = 64


def _gelu(x: Tree) -> Tree:
    # 1 + erf(u) cancels below 0, where 1 - erf(-u) is erfc(-u).
    scale = algebra.number(Fraction(repr(-math.sqrt(0.5))))
    return algebra.product(
        algebra.number(Fraction(1, 2)), x, algebra.call("erfc", algebra.product(scale, x))
    )


def _power(base: Tree, exponent: Tree) -> Tree | None:
    """Return a power with one number in it; None for another."""
    if exponent.is_number and abs(exponent.fraction) <= _LARGEST_EXPONENT:
        return algebra.power(base, exponent.fraction)
    if base.is_number and base.fraction > 0:
        logarithm = Fraction(repr(math.log(base.fraction)))
        return algebra.call("exp", algebra.product(exponent, algebra.number(logarithm)))
    return None


_COMPARISON_SIGNS = {operator: sign for sign, operator in COMPARISONS.items()}


def _function(kind: str) -> Callable[..., Tree]:
    return lambda *arguments: algebra.call(kind, *arguments)


_FUNCTIONS = (
    *(
        "erf",
        "erfc",
        "exp",
        "expm1",
        "log",
        "log1p",
        "sqrt",
        "abs",
        "tanh",
        "sinh",
        "cosh",
        "asinh",
        "atanh",
    ),
    *("sigmoid", "softplus", "relu", "sign", "floor", "ceil", "round", "maximum", "minimum"),
    *("log_one_plus", "log_sigmoid", "logcosh", "tanhshrink", "tanh_softplus"),
)
"""Called alike in both."""
_ARITHMETIC: Mapping[str, Callable[..., Tree]] = {
    **{name: _function(name) for name in _FUNCTIONS},
    "add": algebra.add,
    "sub": algebra.subtract,
    "mul": algebra.product,
    "div": algebra.divide,
    "neg": algebra.negate,
    "square": lambda x: algebra.power(x, 2),
    "reciprocal": lambda x: algebra.power(x, -1),
    "rsqrt": lambda x: algebra.power(algebra.call("sqrt", x), -1),
    "silu": lambda x: algebra.product(x, algebra.call("sigmoid", x)),
    "mish": lambda x: algebra.product(x, algebra.call("tanh_softplus", x)),
}
_OWN_KINDS = frozenset({*_FUNCTIONS, "where", "sum", "product", "power", "number", "input", "attr"})
