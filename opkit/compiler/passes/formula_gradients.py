"""Gradients of formulas: as graphs in their equal forms, and as trees of the formula language."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction

from opkit import algebra
from opkit.algebra import COLUMNS, Node
from opkit.errors import UsageError

from ..ir import Graph, is_one, same
from .differentiation import gradient
from .equal_forms import Trees, gradient_form, in_equal_form, shifts_of, trees_of

__all__ = ["formula_gradient", "gradient_trees"]

_LARGEST_DENOMINATOR = 1000
"""Largest denominator of a number that is written as a fraction, such as 1/6."""
_KEPT = ("cast", "broadcast_to", "reshape")
"""What formulas over rows need not say."""


def formula_gradient(
    graph: Graph,
    wanted: Sequence[str],
    *,
    fast_math: bool = False,
    written: Mapping[str, Node] | None = None,
) -> tuple[Graph, tuple[str, ...]]:
    """Return the gradient of formulas, which are first brought into the form that keeps accuracy,
    and the names of its inputs that are gradients of outputs.

    Args:
        graph: the formulas.
        wanted: inputs.
        fast_math: let go of what NaN, infinities and signed zeros would be.
        written: outputs as they were written, over the graph's inputs and attributes.
    """
    better = in_equal_form(graph, fast_math=fast_math, is_last=False, written=written)
    found = gradient(better, wanted, constants=shifts_of(better), is_rounded=False)
    known = {tensor.name for tensor in graph.inputs}
    return found, tuple(tensor.name for tensor in found.inputs if tensor.name not in known)


def gradient_trees(
    graph: Graph,
    wanted: Sequence[str],
    *,
    fast_math: bool = False,
    written: Mapping[str, Node] | None = None,
) -> dict[str, Node]:
    """Return the gradients of formulas in the language of formulas over rows; none of an input
    that no output changes with.

    Args:
        graph: formulas over elements, or over rows that reductions are taken along; inputs of one
            value per row have a last axis of 1.
        wanted, fast_math, written: as of `formula_gradient`.

    Raises:
        UsageError: the language has no words for a gradient.
    """
    terms: dict[str, list[Node]] = {name: [] for name in wanted}
    for output in graph.outputs:
        # Output by output: what they shared would stay in UB for longer than it takes to compute.
        one = replace(graph, outputs=(output,))
        found, seeds = formula_gradient(one, wanted, fast_math=fast_math, written=written)
        trees = trees_of(found)
        rows = _Rows(found, trees)
        known: dict[Node, Node] = {}
        for name in wanted:
            tree = algebra.stabilise(rows.read(trees.outputs[f"grad_{name}"]), fast_math=fast_math)
            # What is shared by the terms of a reduction is shared by the terms beside it, too.
            for _ in range(2):
                tree = _outside(gradient_form(tree, seeds, known))
            tree = algebra.stabilise(tree)
            if _depends(tree, seeds):
                terms[name].append(_with_means(tree))
    return {name: algebra.add(*parts) for name, parts in terms.items() if parts}


def _depends(tree: Node, names: Collection[str]) -> bool:
    return any(node.kind == "input" and node.name in names for node in algebra.walk(tree))


@dataclass
class _Rows:
    """Reads a graph's trees as trees of formulas over rows."""

    graph: Graph
    trees: Trees
    known: dict[Node, Node] = field(default_factory=dict)

    def read(self, node: Node) -> Node:
        if node not in self.known:
            self.known[node] = self.node(node)
        return self.known[node]

    def node(self, node: Node) -> Node:
        if node.kind == "input":
            shape = self.graph.tensors[node.name].shape
            return algebra.call("row", node) if shape and is_one(shape[-1]) else node
        if node.kind == "attr":
            return self.leaf(node)
        if node.kind == "number":
            return algebra.number(_as_fraction(node.fraction))
        args = tuple(map(self.read, node.args))
        if node.kind in _KEPT:
            return args[0]
        if node.kind in algebra.REDUCTIONS:
            return _reduced(node.kind, args[0])
        if node.kind != "power" and node.value is not None:
            raise UsageError(f'formulas over rows have no "{node.kind}"')
        return algebra.rebuild(node, args)

    def leaf(self, node: Node) -> Node:
        leaf = self.trees.leaves.get(node.name)
        if leaf is None or leaf.operator == "attribute":
            return node if leaf is None else algebra.attribute(leaf.settings.text("name"))
        if leaf.operator == "extent":
            extent = leaf.settings["extent"]
            if any(t.shape and same(t.shape[-1], extent) for t in self.graph.inputs):
                return COLUMNS
            raise UsageError(f"formulas over rows do not know the size {extent}")
        return algebra.number(Fraction(repr(leaf.settings.number("value"))))


def _as_fraction(value: Fraction) -> Fraction:
    short = value.limit_denominator(_LARGEST_DENOMINATOR)
    return short if float(short) == float(value) else value


def _reduced(kind: str, value: Node) -> Node:
    """Return a reduction along the row, with what is constant along it outside."""
    if kind == "row_sum":
        return _row_sum(value)
    return algebra.call(kind, value) if value.space == "tile" else value


def _row_sum(value: Node) -> Node:
    if value.space != "tile":
        return algebra.product(COLUMNS, value)
    factors = algebra.factors_of(value)
    wide = [factor for factor in factors if factor.space == "tile"]
    narrow = [factor for factor in factors if factor.space != "tile"]
    return algebra.product(*narrow, algebra.call("row_sum", algebra.product(*wide)))


def _outside(tree: Node) -> Node:
    """Return a tree with what is constant along rows outside of sums along them."""
    known: dict[Node, Node] = {}
    for node in algebra.walk(tree):
        args = tuple(known[argument] for argument in node.args)
        is_sum = node.kind == "row_sum"
        known[node] = _row_sum(args[0]) if is_sum else algebra.rebuild(node, args)
    return known[tree]


def _with_means(tree: Node) -> Node:
    """Return a tree in which sums along rows that are divided by their length are means."""
    known: dict[Node, Node] = {}
    for node in algebra.walk(tree):
        value = algebra.rebuild(node, tuple(known[argument] for argument in node.args))
        known[node] = _mean(value) if value.kind == "product" else value
    return known[tree]


def _mean(value: Node) -> Node:
    factors = list(algebra.factors_of(value))
    for at, factor in enumerate(factors):
        by_length = algebra.power(COLUMNS, -1)
        if factor.kind == "row_sum" and by_length in factors:
            factors[at] = algebra.call("row_mean", *factor.args)
            factors.remove(by_length)
            return algebra.product(*factors)
    return value
